"""What Slurm's tools print of reservations, nodes and jobs, with times in UTC."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

_FIELD = re.compile(r"(\w+)=(\S*)")
_CPUS = re.compile(r"(?:^|,)cpu=(\d+)")
JOB_FORMAT = "%S|%e|%C|%v"
"""Begin, end by the time limit, CPUs, reservation."""
TIME = "%Y-%m-%dT%H:%M:%S"


class ListedReservation(NamedTuple):
    """A reservation that Slurm lists."""

    name: str
    partition: str
    cpus: int
    start_at: datetime
    ends_at: datetime


class RunningJob(NamedTuple):
    """A job that runs until its time limit at the latest."""

    began_at: datetime | None
    ends_at: datetime | None
    cpus: int
    reservation: str
    """Empty: it runs in none."""


def written(at: datetime) -> str:
    """Return a time as Slurm reads it, in UTC."""
    return at.astimezone(UTC).strftime(TIME)


def read_time(text: str) -> datetime | None:
    """Return a time that Slurm printed in UTC; None for `Unknown`, `N/A` or anything else."""
    try:
        return datetime.strptime(text, TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def reservations(printed: str) -> Iterator[ListedReservation]:
    """Read `scontrol --oneliner show reservation`; lines of another form are left out."""
    for line in printed.splitlines():
        fields: dict[str, str] = {}
        for name, value in _FIELD.findall(line):
            # Those of single nodes follow, under the same names.
            fields.setdefault(name, value)
        start, end = read_time(fields.get("StartTime", "")), read_time(fields.get("EndTime", ""))
        if "ReservationName" in fields and start and end:
            cpus = _CPUS.search(fields.get("TRES", ""))
            yield ListedReservation(
                fields["ReservationName"],
                fields.get("PartitionName", ""),
                int(cpus.group(1)) if cpus else 0,
                start,
                end,
            )


def nodes(printed: str) -> list[int]:
    """Read `sinfo --Node --format=%c`: the CPUs of each node of a partition."""
    return [int(word) for word in printed.split() if word.isdigit()]


def jobs(printed: str) -> Iterator[RunningJob]:
    """Read `squeue` in `JOB_FORMAT` of running jobs; lines of another form are left out."""
    for line in printed.splitlines():
        fields = line.strip().split("|")
        if len(fields) == 4 and fields[2].isdigit():
            name = "" if fields[3] == "(null)" else fields[3]
            yield RunningJob(read_time(fields[0]), read_time(fields[1]), int(fields[2]), name)


def in_use(running: Iterable[RunningJob]) -> frozenset[str]:
    """Return the names of the reservations in which jobs run."""
    return frozenset(each.reservation for each in running) - {""}
