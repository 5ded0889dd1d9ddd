"""`docs/guide/descriptions.md`: every field of a job description, with its bounds as the rules tell them."""

import re
from collections.abc import Iterator

from docs.pages.structs import cell, default, field_docs, head, row, struct_of
from wms.jobdesc.description import JobDescription
from wms.jobdesc.document import DESCRIPTIONS_LIMIT, SIZE_LIMIT
from wms.jobdesc.validation import RULES

LEAD = """# Job descriptions

A file of descriptions is TOML (`jobs.toml`) or JSON (`jobs.json`, or `jobs.jsonl` with one object a line); `wms submit - ` reads JSON
lines from standard input. The fields are the same in each. A file has at most {bytes:,} bytes and {entries:,} descriptions.

```toml
[[job]]
name = "fit {{sample}}"
executable = "./fit"
arguments = ["{{sample}}", "{{n}}"]
memory_mb = 2000
output_sandbox = ["*.root"]

[job.parameters]
sample = ["a", "b", "c"]
```

```json
{{"executable": "echo", "arguments": ["one"]}}
{{"executable": "echo", "arguments": ["two"], "cpu_time": 600}}
```

Only `executable` must be given. An unknown key is refused, and so is a value out of its bounds; every problem is told at once, with its
place. Owner, group and VO are not here: the token says them.

"""

_BOUNDS = re.compile(r"must (?:be|have) (.*?), not ")
_PROBES: tuple[object, ...] = (10**13, "x" * 70_000, ["x"] * 1_000_001, {f"a{n}": "x" for n in range(1_001)})
"""Values so large that a rule answers with its bounds: a number, a text, a list, a table."""


def page() -> str:
    """Return the page."""
    lines = [
        LEAD.format(bytes=SIZE_LIMIT, entries=DESCRIPTIONS_LIMIT),
        *head("Field", "Bounds", "Default", ""),
    ]
    docs = field_docs(JobDescription)
    for field in struct_of(JobDescription).fields:
        given = f"`{text}`" if (text := default(field)) else "**required**"
        lines.append(
            row(
                f"`{field.encode_name}`",
                cell(bounds(field.encode_name)),
                given,
                cell(docs.get(field.name, "")),
            )
        )
    return "\n".join(lines).rstrip() + "\n"


def bounds(name: str) -> str:
    """Return what the rule of a field says of its bounds."""
    return "; ".join(dict.fromkeys(_bounds(name))) or "see its description"


def _bounds(name: str) -> Iterator[str]:
    for probe in _PROBES:
        for place, message, _ in RULES[name](probe)[:1]:
            found = _BOUNDS.search(message)
            if not place and found and not found[1].startswith(("a ", "true")):
                yield found[1]
            elif not place and message.startswith("must be true"):
                yield "true or false"
