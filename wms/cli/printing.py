"""Output of commands: tables fitted to a terminal (unlimited in width elsewhere), JSON, and notes on standard error."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wms.printed_text import escaped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from wms.cli.table import Fitted, TableColumn

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


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def show_json(value: Any) -> None:
    """Print a value as one JSON document on one line."""
    import msgspec

    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def show_pretty_json(value: Any) -> None:
    """Print a value as one indented JSON document."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def show(line: str = "") -> None:
    """Print a line on standard output. Unsafe characters are escaped, since the line may contain texts from other users."""
    sys.stdout.write(f"{escaped(line)}\n")


def note(line: str) -> None:
    """Print a line on standard error that is no result of the command, after all results so far. Unsafe characters are escaped."""
    sys.stdout.flush()
    sys.stderr.write(f"{escaped(line)}\n")


def jobs_of(count: int) -> str:
    """Return a number of jobs as text: `1 job`, `2,000 jobs`."""
    return "1 job" if count == 1 else f"{count:,} jobs"


def show_table(
    columns: "Sequence[TableColumn | str]", rows: Iterable[Sequence[object]], *, empty: str = ""
) -> None:
    """Print rows under headings. On a terminal the table is fitted to its width; elsewhere nothing is cut.

    Without rows, print the text `empty` on standard error.
    """
    from wms.cli.table import fitted

    lines = [[escaped(str(cell)) for cell in row] for row in rows]
    if not lines:
        note(empty or "nothing to show")
    elif is_terminal():
        out = console()
        out.print(drawn(table := fitted(columns, lines, out.width)), soft_wrap=True)
        if table.left_out:
            note(f"no room for {', '.join(table.left_out)}: a wider terminal shows them, --json has all")
    else:
        for line in fitted(columns, lines, None).lines:
            show("  ".join(line).rstrip())


def drawn(table: "Fitted") -> "Text":
    """Return a table as styled text for the terminal: headings in bold, states in colours."""
    if table.as_records:
        return drawn_rows([(line, False) for line in table.lines])
    return drawn_rows([(line, n == 0) for n, line in enumerate(table.lines)])


def drawn_rows(rows: "Iterable[tuple[Sequence[str], bool]]") -> "Text":
    """Return rows of cells as styled text for the terminal. Rows whose flag is True are in bold; in others, states have colours."""
    from rich.text import Text

    whole = Text(no_wrap=True)
    for n, (cells, strong) in enumerate(rows):
        whole.append("\n" if n else "")
        for place, cell in enumerate(cells):
            whole.append("  " if place else "")
            whole.append(escaped(cell), "bold" if strong else STATE_STYLES.get(cell.strip(), ""))
    return whole


def console(*, stderr: bool = False) -> "Console":
    """Return a `rich` console for text on standard output, or on standard error if `stderr` is True."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, emoji=False, markup=False)


def show_output(text: str, *, raw: bool = False) -> None:
    """Print what a program printed. Unsafe characters are escaped, unless the user wants the text `raw`."""
    sys.stdout.write(text if raw else escaped(text))
    sys.stdout.flush()


def give_up_output() -> None:
    """Redirect standard output to /dev/null. Called when the reader of a pipe has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
