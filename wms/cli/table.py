"""Tables that fit a terminal: the least important columns are left out first, texts are wrapped, and ids are never cut.

If even the most important columns do not fit, each row is shown as a record, one line for each value. Pure functions.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

GAP = 2
"""The number of spaces between columns."""
ALWAYS = 0
"""The priority of a column that is always shown whole, such as an id."""

Fit: TypeAlias = Literal["whole", "cut", "wrap"]
Line: TypeAlias = list[str]
"""One line on the screen: the padded text of each column."""


class TableColumn(NamedTuple):
    """A column of a table: its heading, and its behaviour if the terminal is narrow."""

    heading: str
    priority: int = 1
    """The priority. 0: always shown whole; 1: always shown; 2 to 9: shown if there is room, smaller numbers first."""
    fit: Fit = "whole"
    """How too wide cells are shown: whole, cut with an ellipsis, or wrapped over several lines."""
    least: int = 8
    """The width, in characters, below which a column is not cut or wrapped further."""

    @property
    def name(self) -> str:
        """The heading as it is shown, without the `>` that aligns the column to the right."""
        return self.heading.rstrip(">")

    @property
    def to_right(self) -> bool:
        """Whether the column's cells are aligned to the right, as numbers are."""
        return self.heading.endswith(">")


class Fitted(NamedTuple):
    """A table as lines that fit the terminal, and the names of columns that did not fit."""

    lines: list[Line]
    """The lines of the table. The first has the headings, unless each row is shown as a record of names and values."""
    left_out: tuple[str, ...] = ()
    """The names of the columns that were left out."""
    as_records: bool = False


_TEXTS = {"WHY": 24, "TEXT": 24, "WHAT": 24, "NOTICE": 20, "REQUIREMENTS": 20, "SERVER": 24, "DOOR": 20}
"""Columns whose cells are sentences, by heading, each with the width in characters below which it is not wrapped further."""


def column(given: TableColumn | str) -> TableColumn:
    """Return a column; `given` may be a heading alone. A `>` at the end of the heading aligns the column to the right."""
    if isinstance(given, TableColumn):
        return given
    least = _TEXTS.get(given.rstrip(">"))
    return TableColumn(given) if least is None else TableColumn(given, fit="wrap", least=least)


def fitted(columns: Sequence[TableColumn | str], rows: Iterable[Sequence[str]], width: int | None) -> Fitted:
    """Return the table in lines of at most `width` terminal cells; None for an unlimited width."""
    kept = [column(each) for each in columns]
    cells = [list(row) for row in rows]
    if width is None:
        return Fitted(_lines(kept, cells, _natural(kept, cells)))
    chosen = _chosen(kept, cells, width)
    if chosen is None:
        return Fitted(_records(kept, cells, width), as_records=True)
    columns, cells = _only(chosen, kept, cells)
    widths = _widths(columns, cells, width)
    assert widths is not None
    left_out = tuple(each.name for n, each in enumerate(kept) if n not in chosen)
    return Fitted(_lines(columns, cells, widths), left_out)


def _chosen(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the indices of the columns to show: those of priority 0 and 1, and of the others as many as fit, smallest numbers first.

    Return None if not even those of priority 0 and 1 fit into `width` terminal cells.
    """

    def fit(chosen: list[int]) -> bool:
        return _widths(*_only(chosen, columns, rows), width) is not None

    chosen = [n for n, each in enumerate(columns) if each.priority <= 1]
    if not fit(chosen):
        return None
    for n in sorted(range(len(columns)), key=lambda n: columns[n].priority):
        if n not in chosen and fit(more := sorted([*chosen, n])):
            chosen = more
    return chosen


def _only(
    chosen: Sequence[int], columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]
) -> tuple[list[TableColumn], list[list[str]]]:
    return [columns[n] for n in chosen], [[row[n] for n in chosen] for row in rows]


def length(text: str) -> int:
    """Return the number of terminal cells that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _natural(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(length(cell) for cell in cells)
        for cells in zip([each.name for each in columns], *rows, strict=True)
    ]


def _widths(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the width of each column, in terminal cells, so that a line has at most `width`. The widest columns are narrowed first.

    Return None if the columns do not fit.
    """
    widths = _natural(columns, rows)
    least = [
        wide if each.fit == "whole" else min(wide, max(each.least, length(each.name)))
        for each, wide in zip(columns, widths, strict=True)
    ]
    over = sum(widths) + GAP * (len(widths) - 1) - width
    if sum(least) + GAP * (len(least) - 1) > width:
        return None
    while over > 0:
        widest = max((n for n in range(len(widths)) if widths[n] > least[n]), key=lambda n: widths[n])
        widths[widest] -= 1
        over -= 1
    return widths


def _lines(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[str]], widths: Sequence[int]
) -> list[Line]:
    lines = [[_padded(each, each.name, wide) for each, wide in zip(columns, widths, strict=True)]]
    for row in rows:
        parts = [_parts(each, cell, wide) for each, cell, wide in zip(columns, row, widths, strict=True)]
        lines += [
            [
                _padded(each, part[n] if n < len(part) else "", wide)
                for each, part, wide in zip(columns, parts, widths, strict=True)
            ]
            for n in range(max(map(len, parts)))
        ]
    return lines


def _parts(column: TableColumn, cell: str, width: int) -> list[str]:
    if length(cell) <= width or column.fit == "whole":
        return [cell]
    return [_cut(cell, width)] if column.fit == "cut" else wrapped(cell, width)


def _cut(text: str, width: int) -> str:
    while text and length(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines of at most `width` cells, broken between words if possible."""
    lines, line = [], ""
    for word in text.split(" "):
        rest = word
        if line and length(line) + 1 + length(rest) > width:
            lines.append(line)
            line = ""
        while length(rest) > width:
            cut = next(n for n in range(len(rest), 0, -1) if length(rest[:n]) <= width or n == 1)
            lines.append(rest[:cut])
            rest = rest[cut:]
        line = f"{line} {rest}" if line else rest
    return [*lines, line] if line or not lines else lines


def _padded(column: TableColumn, text: str, width: int) -> str:
    space = " " * (width - length(text))
    return f"{space}{text}" if column.to_right else f"{text}{space}"


def _records(columns: Sequence[TableColumn], rows: Iterable[Sequence[str]], width: int) -> list[Line]:
    """Return each row as lines of heading and value, with an empty line after it. Values are wrapped, but those of priority 0 are not."""
    wide = max(length(each.name) for each in columns)
    lines: list[Line] = []
    for row in rows:
        for each, cell in zip(columns, row, strict=True):
            if not cell:
                continue
            whole = each.priority == ALWAYS
            parts = [cell] if whole else wrapped(cell, max(8, width - wide - GAP))
            names = [each.name, *[""] * (len(parts) - 1)]
            lines += [
                [name + " " * (wide - length(name)), part] for name, part in zip(names, parts, strict=True)
            ]
        lines.append([])
    return lines
