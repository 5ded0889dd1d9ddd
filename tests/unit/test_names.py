"""One word for one thing: no public class name is defined twice in the library and the services."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
TWICE = {
    "Client": "wms.client has it for asyncio, and wms.client.sync with the same methods for programs that block",
    "Share": "wms.glue.glue2 writes its classes under the names that GLUE 2.0 gives them; the other travels in a reply",
    "Config": "each service's config module has one, which its host and the generated pages find by this name",
}
"""Names that stand in several modules, and why."""


def classes() -> dict[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    for folder in ("wms", "services"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(path.relative_to(ROOT)))
    return found


def test_no_public_class_name_is_defined_twice() -> None:
    twice = {name: places for name, places in classes().items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in TWICE} == {}
    assert twice.keys() == TWICE.keys()  # what is mended leaves the list
