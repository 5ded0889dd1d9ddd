"""Parameter lists of an array, from options and from a CSV file.

The first line of the file has the names; each further line has the values of one job.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from wms.cli.job_descriptions import columns, pairs, plain, text_of
from wms.errors import Rejected, shown
from wms.jobdesc.conflicts import ARRAY_LIMIT
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.problem import InvalidDescription
from wms.jobdesc.series import expanded
from wms.jobdesc.validation import problems

NAMES_LIMIT = 20
_EXAMPLE = "write a first line such as sample,seed and then one line a job"


def lists_of(words: Sequence[str], table: str | None) -> dict[str, tuple[str, ...]]:
    """Return parameter lists by name: those of `--parameter` options, and those of the table file `table` (None for none).

    Raise Rejected if both name the same parameter, or if one is malformed.
    """
    lists = columns(words)
    if table is None:
        return lists
    found = read_table(text_of(table), table)
    if both := lists.keys() & found.keys():
        name = shown(min(both), 60)
        raise Rejected("BAD_OPTION", f"--parameter and --table both give {name}", "keep one of them")
    return {**found, **lists}


def series_of(words: Sequence[str], array: int | None) -> dict[str, tuple[str, ...]]:
    """Return parameter lists by name, from words such as `NAME=start=10,step=5,count=3`. `array` is used for a missing `count`.

    Raise InvalidDescription if a word is malformed.
    """
    said = {name: _numbers(name, text) for name, text in pairs(words, "--series").items()}
    found, wrong = expanded({"parameters": said, "array": array}, Expansion())
    if wrong:
        raise InvalidDescription(problems(wrong))
    lists: dict[str, tuple[str, ...]] = found["parameters"]  # type: ignore[assignment]
    return lists


def _numbers(name: str, text: str) -> dict[str, object]:
    return {
        key: plain(value) for key, value in pairs(text.split(","), f"--series {shown(name, 60)}:").items()
    }


def together(*lists: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the parameter lists of several options as one table. Raise Rejected if two of them have the same name."""
    found: dict[str, tuple[str, ...]] = {}
    for each in lists:
        if both := found.keys() & each.keys():
            name = shown(min(both), 60)
            raise Rejected("BAD_OPTION", f"the parameter {name} is given twice", "keep one of them")
        found |= each
    return found


def read_table(text: str, name: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of a CSV text, by the names in its first line. `name` is the file's name.

    In a file whose name ends in .tsv, tabs separate the cells. Raise Rejected, with the line's number, if the text is malformed.
    """
    rows = _rows(
        text.removeprefix("\ufeff"), shown(name, 200), "\t" if name.lower().endswith(".tsv") else ","
    )
    names = _names(next(rows, (1, []))[1], shown(name, 200))
    jobs: list[list[str]] = []
    for line, row in rows:
        if len(row) != len(names):
            raise _wrong(
                shown(name, 200),
                line,
                f"has {_counted(row, 'cell')}, and there are {_counted(names, 'name')}",
                'quote a cell with commas: "a,b"',
            )
        if len(jobs) == ARRAY_LIMIT:
            raise _wrong(
                shown(name, 200),
                line,
                f"is job {ARRAY_LIMIT + 1:,}; a sweep has at most {ARRAY_LIMIT:,}",
                "split the table",
            )
        jobs.append(row)
    if not jobs:
        raise Rejected("BAD_TABLE", f"{shown(name, 200)} has no line with values", _EXAMPLE)
    return dict(zip(names, zip(*jobs, strict=True), strict=True))


def _counted(items: Sequence[str], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _rows(text: str, name: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    # newline="" keeps line ends inside quotes as they are.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise _wrong(
                name, line, f"cannot be read: {error}", 'write a quote inside quotes twice: "a ""b"""'
            ) from None
        if row is None:
            return
        if not any(cell.strip() for cell in row):
            raise _wrong(name, line, "is blank", "remove it; an empty value among others is allowed")
        yield line, row


def _names(row: Sequence[str], table: str) -> list[str]:
    names = [cell.strip() for cell in row]
    if not names:
        raise Rejected("BAD_TABLE", f"{table} is empty", _EXAMPLE)
    if len(names) > NAMES_LIMIT:
        raise _wrong(
            table,
            1,
            f"has {len(names):,} names, more than {NAMES_LIMIT}",
            "leave out what the jobs do not use",
        )
    for name in names:
        if not (name.isascii() and name.isidentifier()) or name == "n" or len(name) > 64:
            raise _wrong(
                table,
                1,
                f'"{shown(name, 60)}" is no name of a parameter',
                f"letters, digits and _, and not n; {_EXAMPLE}",
            )
        if names.count(name) > 1:
            raise _wrong(table, 1, f"names {name} twice", "rename one of them")
    return names


def _wrong(table: str, line: int, what: str, remedy: str) -> Rejected:
    return Rejected("BAD_TABLE", f"{table}, line {line:,}: {what}", remedy)
