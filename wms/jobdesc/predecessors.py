"""Predecessors: the jobs that must end before another job starts, as its description names them."""

import re
from collections.abc import Iterable

import msgspec

from wms.ids import joined
from wms.jobdesc.description import JobDescription

Ranges = tuple[tuple[int, int], ...]
"""Ranges of job ids in ascending order, both ends of each included."""

FIELDS = ("after", "after_any", "input_from")
"""The fields of a description that name predecessors."""
RANGES_LIMIT = 1_000
PREDECESSORS_LIMIT = 1_000_000
OUTPUTS_LIMIT = 100
"""How many jobs a job may get outputs from: as many as it may have input archives."""
ID_LIMIT = 2**62
_RANGE = re.compile(r"([1-9][0-9]{0,18})(?:-([1-9][0-9]{0,18}))?")


class Predecessors(msgspec.Struct, frozen=True):
    """The ids of the jobs that must end before a job starts."""

    all: Ranges
    any_end: Ranges = ()
    """The predecessors that may end in any state. All others must be Done."""
    outputs_of: Ranges = ()
    """The predecessors whose outputs the job gets."""


def predecessors_of(description: JobDescription) -> Predecessors | None:
    """Return the predecessors that a valid description names; None if it names none."""
    if not (description.after or description.after_any or description.input_from):
        return None
    any_end, outputs_of = ranges_of(description.after_any), ranges_of(description.input_from)
    everyone = joined((*ranges_of(description.after), *any_end, *outputs_of))
    return Predecessors(everyone, any_end, outputs_of)


def ranges_of(entries: Iterable[int | str]) -> Ranges:
    """Return the job ids that the entries name: ids, and texts such as `7,100-200`. Raise ValueError for a malformed entry."""
    return joined(each for entry in entries for each in _ranges(entry))


def count(ranges: Iterable[tuple[int, int]]) -> int:
    """Return the number of ids in ranges, both ends included."""
    return sum(high - low + 1 for low, high in ranges)


def in_words(ranges: Ranges, shown: int = 10) -> str:
    """Return the ids as text for people, `job 7` or `jobs 7,100-200`. Of many ranges only the first `shown` are given."""
    parts = [str(low) if low == high else f"{low}-{high}" for low, high in ranges[:shown]]
    more = ",..." if len(ranges) > shown else ""
    total = count(ranges)
    return f"job {parts[0]}" if total == 1 else f"jobs {','.join(parts)}{more}"


def _ranges(entry: int | str) -> list[tuple[int, int]]:
    if not isinstance(entry, str):
        return [(entry, entry)]
    return [_range(part.strip()) for part in entry.split(",")]


def _range(part: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(part)
    if found is None:
        raise ValueError(f'"{part[:60]}" is neither a job\'s id nor a range of them')
    low, high = int(found[1]), int(found[2] or found[1])
    if low > high:
        raise ValueError(f"the range {part} ends before it begins")
    if high > ID_LIMIT:
        raise ValueError(f"{high} is larger than any job's id")
    return low, high
