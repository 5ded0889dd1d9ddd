"""What commands print: tables that fit a terminal and are plain elsewhere, JSON, and notes on standard error."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

STATE_STYLES = {
    "Waiting": "yellow",
    "Matched": "cyan",
    "Running": "bright_blue",
    "Completing": "bright_blue",
    "Completed": "bright_blue",
    "Stalled": "magenta",
    "Held": "magenta",
    "Done": "green",
    "Failed": "red",
    "Killed": "red",
    "Deleted": "dim",
}
_CONTROLS = re.compile(r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")


def is_terminal() -> bool:
    """Tell whether a person reads standard output."""
    return sys.stdout.isatty()


def show_json(value: Any) -> None:
    """Print one JSON document on one line."""
    import msgspec

    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def show_pretty_json(value: Any) -> None:
    """Print one JSON document for people."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def show(line: str = "") -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def note(line: str) -> None:
    """Tell something that is not the result: on standard error."""
    sys.stderr.write(f"{line}\n")


def jobs_of(count: int) -> str:
    """Return a number of jobs in words: `1 job`, `2,000 jobs`."""
    return "1 job" if count == 1 else f"{count:,} jobs"


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str = "") -> None:
    """Print rows under headings. Columns whose heading ends with `>` stand to the right."""
    lines = [[str(cell) for cell in row] for row in rows]
    if not lines:
        note(empty or "nothing to show")
    elif is_terminal():
        console().print(table(columns, lines))
    else:
        _show_plain(columns, lines)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> "Table":
    """Return the table that a terminal shows."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(
            column.rstrip(">"),
            justify="right" if column.endswith(">") else "left",
            overflow="fold" if column in ("WHY", "TEXT") else "ellipsis",
            no_wrap=column not in ("WHY", "TEXT"),
        )
    for row in rows:
        made.add_row(*(styled(cell) for cell in row))
    return made


def styled(cell: str) -> "Text":
    """Return the cell in its colour; what it holds is never markup."""
    from rich.text import Text

    return Text(cell, style=STATE_STYLES.get(cell, ""))


def console(*, stderr: bool = False) -> "Console":
    """Return a console that people read."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, emoji=False, markup=False)


def _show_plain(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    heads = [column.rstrip(">") for column in columns]
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    for line in (heads, *lines):
        cells = [
            cell.rjust(width) if column.endswith(">") else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        show("  ".join(cells).rstrip())


def show_output(text: str) -> None:
    """Print what a job printed; on a terminal without what could take it over, colours left in."""
    sys.stdout.write(_CONTROLS.sub("�", text) if is_terminal() else text)
    sys.stdout.flush()


def give_up_output() -> None:
    """Point standard output to nowhere, since nobody reads it any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
