"""What really ran: every payload writes its job, epoch and the time into one file, which the services never see.

Lines are appended whole by one write each. A payload that is killed leaves no last line; it ticks each tenth of a second,
so that its last line tells until when it ran.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import asyncpg
import msgspec

PAYLOAD = """#!/bin/sh
# payload.sh LOG: runs for as many ticks as its job's number says, and fails if the number ends in 50 or 00.
say() {
    read -r up rest </proc/uptime
    echo "$WMS_JOB_ID $WMS_EPOCH $1 $up" >>"$2"
}
say start "$1"
ticks=$((WMS_JOB_ID % 8))
while [ "$ticks" -gt 0 ]; do
    sleep 0.1
    ticks=$((ticks - 1))
    say tick "$1"
done
say end "$1"
[ $((WMS_JOB_ID % 50)) -ne 0 ] || exit 3
"""

CLOCK_STEP = 0.011
"""/proc/uptime counts hundredths of a second."""

Held = tuple[int, int]


def fails(job_id: int) -> bool:
    """Whether the payload of this job exits with an error."""
    return job_id % 50 == 0


class Execution(msgspec.Struct, kw_only=True):
    """One payload's life: seconds since the machine's start."""

    job_id: int
    epoch: int
    starts: int = 0
    began: float = 0.0
    last: float = 0.0
    ended: bool = False


def read(path: Path) -> dict[Held, Execution]:
    """Return every execution that the file tells of."""
    found: dict[Held, Execution] = {}
    for line in path.read_text("ascii").splitlines():
        job_id, epoch, what, at = line.split()
        held = (int(job_id), int(epoch))
        one = found.setdefault(held, Execution(job_id=held[0], epoch=held[1], began=float(at)))
        one.starts += what == "start"
        one.last = float(at)
        one.ended |= what == "end"
    return found


def faults(executions: Mapping[Held, Execution], attempts: Iterable[asyncpg.Record]) -> list[str]:
    """Return what ran that should not have, and what did not that should."""
    by_held = {(row["job_id"], row["epoch"]): row for row in attempts}
    return [
        *(f"{held}: started {one.starts} times under one lease" for held, one in executions.items() if one.starts != 1),
        *_overlapping(executions),
        *_unleased(executions, by_held),
        *(
            f"{held}: said to be {row['outcome']}, yet it did not run to its end"
            for held, row in by_held.items()
            if row["outcome"] in ("done", "failed") and not (held in executions and executions[held].ended)
        ),
    ]  # fmt: skip


def _overlapping(executions: Mapping[Held, Execution]) -> Iterable[str]:
    previous: Execution | None = None
    for held in sorted(executions):
        one = executions[held]
        if previous is not None and previous.job_id == one.job_id and previous.last > one.began + CLOCK_STEP:
            yield (
                f"job {one.job_id}: epoch {previous.epoch} still ran at {previous.last}, "
                f"epoch {one.epoch} began at {one.began}"
            )
        previous = one


def _unleased(executions: Mapping[Held, Execution], attempts: Mapping[Held, asyncpg.Record]) -> Iterable[str]:
    for held in executions:
        row = attempts.get(held)
        if row is None:
            yield f"{held}: ran, and there was no such attempt"
        elif row["accepted_at"] is None:
            yield f"{held}: ran, and its lease was never granted"


def repeated(executions: Mapping[Held, Execution]) -> int:
    """Return how many jobs ran to their end more than once: their pilot died before it could report."""
    ends: dict[int, int] = {}
    for one in executions.values():
        ends[one.job_id] = ends.get(one.job_id, 0) + one.ended
    return sum(count > 1 for count in ends.values())


def expected(job_ids: Sequence[int], killed: set[int]) -> dict[int, set[str]]:
    """Return in which states each job may have ended."""
    return {
        job_id: ({"Killed"} if job_id in killed else set()) | {"Failed" if fails(job_id) else "Done"}
        for job_id in job_ids
    }
