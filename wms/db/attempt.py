"""Attempts and leases in the database. Callers lock their jobs' rows first, which orders writers."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from wms.db.columns import sparse
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import AttemptId, Epoch, JobId, PilotId
from wms.job.job import Outcome
from wms.job.reasons import Code
from wms.messages.reports import Usage

SQL = load(__file__)


NOTHING_USED = Usage()


class AttemptEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How one attempt ended."""

    job_id: JobId
    epoch: Epoch
    outcome: Outcome
    reason: Code
    text: str = ""
    exit_code: int | None = None
    signal: int | None = None
    usage: Usage | None = None
    output_sha256: str | None = None
    output_bytes: int | None = None
    stdout_tail: str = ""
    stderr_tail: str = ""
    accepted: bool = False
    """Whether it was accepted in this transaction."""
    ran: bool = False
    """Whether its payload began, even where nobody reported the start."""
    start_seq: int | None = None
    """The number of the start in the job's history, if the lease does not have it yet."""
    end_seq: int | None = None
    """The number of the job's end, if the payload's end was the job's."""


async def accept(tx: Transaction, job_ids: Collection[JobId], lease_seconds: float) -> None:
    """Turn offers into leases of so many seconds, or renew leases."""
    if job_ids:
        await tx.execute(SQL["accept"], sorted(job_ids), lease_seconds)


async def note_started(tx: Transaction, started: Mapping[JobId, int]) -> None:
    """Store in leases that payloads began, with the numbers of these moves in the jobs' histories."""
    if started:
        ids = sorted(started)
        await tx.execute(SQL["started"], ids, [started[job_id] for job_id in ids])


async def finish(tx: Transaction, ended: Sequence[AttemptEnd]) -> None:
    """Store how attempts ended, with the moves that their leases hold, and delete the leases."""
    if ended:
        ordered = sorted(ended, key=lambda each: each.job_id)
        await tx.execute(SQL["finish"], *sparse(_row(each) for each in ordered))


def _row(ended: AttemptEnd) -> tuple[Any, ...]:
    usage = ended.usage or NOTHING_USED
    return (
        ended.job_id,
        ended.epoch,
        ended.outcome,
        ended.reason,
        ended.text or None,
        ended.exit_code,
        ended.signal,
        usage.cpu_user_seconds or None,
        usage.cpu_system_seconds or None,
        usage.wall_seconds or None,
        usage.max_rss_bytes or None,
        usage.disk_bytes or None,
        ended.output_sha256,
        ended.output_bytes,
        ended.stdout_tail or None,
        ended.stderr_tail or None,
        ended.accepted or None,
        (ended.ran and ended.start_seq is None) or None,
        ended.start_seq,
        ended.end_seq,
    )


async def recorded(tx: Transaction, reported: Sequence[tuple[JobId, Epoch, PilotId]]) -> set[AttemptId]:
    """Return which of these results are already recorded."""
    if not reported:
        return set()
    columns = list(zip(*reported, strict=True))
    return {AttemptId(row["job_id"], row["epoch"]) for row in await tx.fetch(SQL["recorded"], *columns)}


async def expired(tx: Transaction, limit: int) -> list[JobId]:
    """Return jobs whose lease has expired by the database's clock."""
    return [row["job_id"] for row in await tx.fetch(SQL["expired"], limit)]


async def clock_set(tx: Transaction, step_seconds: float, longest_seconds: float) -> None:
    """Move the ends of leases by `step_seconds`, by which the database's clock was set.

    Several callers move them once: a moved lease runs again, and ends within `longest_seconds`.
    """
    await tx.execute(SQL["clock_set"], step_seconds, longest_seconds)


async def of_pilots(tx: Transaction, pilot_ids: Sequence[PilotId]) -> list[JobId]:
    """Return the jobs that these pilots hold."""
    return [row["job_id"] for row in await tx.fetch(SQL["of_pilots"], pilot_ids)]
