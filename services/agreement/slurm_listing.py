"""Reads what Slurm's tools print about reservations, nodes and jobs, with times in UTC."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

_FIELD = re.compile(r"(\w+)=(\S*)")
_CPUS = re.compile(r"(?:^|,)cpu=(\d+)")
JOB_FORMAT = "%S|%e|%C|%v"
"""The output format for `squeue` that `jobs` reads: start, end by the time limit, CPUs, and name of the reservation."""
TIME = "%Y-%m-%dT%H:%M:%S"


class ListedReservation(NamedTuple):
    """A reservation in the output of `scontrol show reservation`."""

    name: str
    partition: str
    cpus: int
    start_at: datetime
    ends_at: datetime


class RunningJob(NamedTuple):
    """A running job in the output of `squeue`, with its start and the end of its time limit; each is None if Slurm prints none."""

    began_at: datetime | None
    ends_at: datetime | None
    cpus: int
    reservation: str
    """The name of the reservation in which the job runs; empty: none."""


def written(at: datetime) -> str:
    """Return a time in the format that Slurm's tools read, in UTC."""
    return at.astimezone(UTC).strftime(TIME)


def read_time(text: str) -> datetime | None:
    """Return the time that Slurm printed in UTC; None for `Unknown`, `N/A` or anything else."""
    try:
        return datetime.strptime(text, TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def reservations(printed: str) -> Iterator[ListedReservation]:
    """Yield the reservations in the output of `scontrol --oneliner show reservation`; lines of another form are skipped."""
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
    """Return the CPUs of each node, from the output of `sinfo` with the format `%c`, one line for each node."""
    return [int(word) for word in printed.split() if word.isdigit()]


def jobs(printed: str) -> Iterator[RunningJob]:
    """Yield the running jobs in the output of `squeue` with `JOB_FORMAT`; lines of another form are skipped."""
    for line in printed.splitlines():
        fields = line.strip().split("|")
        if len(fields) == 4 and fields[2].isdigit():
            name = "" if fields[3] == "(null)" else fields[3]
            yield RunningJob(read_time(fields[0]), read_time(fields[1]), int(fields[2]), name)


def in_use(running: Iterable[RunningJob]) -> frozenset[str]:
    """Return the names of the reservations in which at least one of these jobs runs."""
    return frozenset(each.reservation for each in running) - {""}
