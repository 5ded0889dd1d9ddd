"""Tables as comma-separated values, for spreadsheets and programs.

Users choose names and parameters. So a text that a spreadsheet would run as a formula may be an attack, and gets `'` in front.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from wms.cli.printing import show

_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-](inf|nan)")


def show_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a line of headings, and one for each row: a value for each column, None for what is not known."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(map(cell, columns))
    table.writerows([cell(value) for value in row] for row in rows)
    show(written.getvalue().removesuffix("\n"))


def cell(value: object) -> object:
    """Return a value as it is written: a text that a spreadsheet would take for a formula with `'` in front, unless it is a number."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
