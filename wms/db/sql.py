"""Named SQL statements, in `<noun>.sql` beside `<noun>.py`.

Each block has a `-- name: word` line, a line with its purpose, and one statement.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_HEAD = re.compile(r"^-- name: (\w+)\n-- (.+)\n", re.MULTILINE)


class Blocks(Mapping[str, str]):
    """The SQL statements of one .sql file, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._blocks = dict(_parse(path))

    def __getitem__(self, name: str) -> str:
        return self._blocks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)


def load(module_file: str) -> Blocks:
    """Read the .sql file beside a module and return its statements by name. Use: `SQL = load(__file__)`."""
    return Blocks(Path(module_file).with_suffix(".sql"))


def _parse(path: Path) -> Iterator[tuple[str, str]]:
    text = path.read_text("utf-8")
    heads = list(_HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        body = text[head.end() : following.start() if following else len(text)]
        yield head.group(1), body.strip().removesuffix(";")
