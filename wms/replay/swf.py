"""The Standard Workload Format (version 2.2) for traces of real systems: one line a job, 18 numbers a line.

The format is D. G. Feitelson's, of the Parallel Workloads Archive. Comments begin with a semicolon; those at the top hold labelled values, such as
`Partition: NUMBER NAME`, which names a partition. -1 stands for an unknown value.
"""

import heapq
import re
from collections.abc import Iterable, Iterator

import msgspec

from wms.errors import Rejected, shown

FIELDS = 18
LINE_LIMIT = 4_096
HEADERS_LIMIT = 20_000
JOBS_LIMIT = 10_000_000
"""The largest number of jobs in a trace: four times as many as the archive's longest trace has."""
NUMBER_LIMIT = 10**12

_PARTITION = re.compile(r";\s*Partition:\s*(\d{1,9})\s+(\S.{0,254})")
_NAME = re.compile(r"[^A-Za-z0-9_.:@+-]+")


class TraceJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a trace, as far as replays need it. -1 stands for an unknown value."""

    number: int
    submit_time: float
    """When the job was submitted, in seconds after the trace begins."""
    run_time: float
    """How many seconds the job ran."""
    processors: int
    """How many processors the job requested; if unknown, how many it got."""
    requested_time: float
    """The run time that the job requested, in seconds."""
    user: int
    group: int
    partition: int


class Trace(msgspec.Struct, frozen=True):
    """The jobs of a trace in the order of their submission, and the names of its partitions by number."""

    jobs: tuple[TraceJob, ...]
    partitions: dict[int, str]


def read(lines: Iterable[str], most: int) -> Trace:
    """Read a trace from its lines. Return its first `most` jobs, by time of submission.

    Raise Rejected, naming the line, for a line that is not in the format, and for a trace without jobs.
    """
    partitions: dict[int, str] = {}
    jobs = heapq.nsmallest(most, _jobs(lines, partitions), key=lambda job: (job.submit_time, job.number))
    if not jobs:
        raise Rejected(
            "BAD_TRACE", "there is no job in the trace", "is it a file in Standard Workload Format?"
        )
    return Trace(tuple(jobs), partitions)


def _jobs(lines: Iterable[str], partitions: dict[int, str]) -> Iterator[TraceJob]:
    headers = jobs = 0
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_LIMIT:
            raise _bad(number, f"is longer than {LINE_LIMIT} characters")
        text = line.strip()
        if text.startswith(";"):
            headers += 1
            if headers > HEADERS_LIMIT:
                raise _bad(number, f"is one more comment than {HEADERS_LIMIT}")
            _note(text, partitions)
        elif text:
            jobs += 1
            if jobs > JOBS_LIMIT:
                raise _bad(number, f"is one more job than {JOBS_LIMIT:,}")
            yield _job(number, text)


def _note(comment: str, partitions: dict[int, str]) -> None:
    found = _PARTITION.fullmatch(comment)
    if found is not None:
        # These become names of sites, in which fewer characters are allowed.
        name = _NAME.sub("-", found[2].strip()).strip("-.")
        partitions[int(found[1])] = name or f"partition{found[1]}"


def _job(number: int, text: str) -> TraceJob:
    fields = text.split()
    if len(fields) != FIELDS:
        raise _bad(number, f"has {len(fields)} fields, not {FIELDS}: {shown(text, 60)}")
    values = _values(number, fields)
    if values[1] < 0:
        raise _bad(number, "has no time of submission (field 2)")
    allocated, requested = int(values[4]), int(values[7])
    return TraceJob(
        number=int(values[0]),
        submit_time=values[1],
        run_time=values[3],
        processors=requested if requested > 0 else allocated,
        requested_time=values[8],
        user=int(values[11]),
        group=int(values[12]),
        partition=int(values[15]),
    )


def _values(number: int, fields: list[str]) -> list[float]:
    try:
        values = [*map(float, fields)]
    except ValueError:
        raise _not_a_number(number, fields) from None
    # The sum finds NaN, which passes the other two comparisons.
    if min(values) < -1 or max(values) > NUMBER_LIMIT or not sum(values) <= FIELDS * NUMBER_LIMIT:
        raise _not_a_number(number, fields)
    return values


def _not_a_number(number: int, fields: list[str]) -> Rejected:
    place = next(place for place, field in enumerate(fields, 1) if not _is_right(field))
    return _bad(number, f"has in field {place} no number from -1 on: {shown(fields[place - 1], 40)}")


def _is_right(field: str) -> bool:
    try:
        return -1 <= float(field) <= NUMBER_LIMIT
    except ValueError:
        return False


def _bad(number: int, what: str) -> Rejected:
    return Rejected(
        "BAD_TRACE", f"line {number} {what}", "a line of a trace holds 18 numbers, or a comment after ;"
    )
