"""Attempts and leases in the database. Callers lock the rows of the jobs first, so that writers follow one order."""

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
"""The usage of an attempt that reported none: all zero."""


class AttemptEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The outcome and the usage of one ended attempt."""

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
    """Whether the pilot accepted the offer in this same transaction."""
    ran: bool = False
    """Whether the payload began, even if no start was reported."""
    start_seq: int | None = None
    """The number of the start in the job's history, if the lease does not hold it yet."""
    end_seq: int | None = None
    """The number of the job's end in its history; None if the job did not end with this attempt."""


async def accept(tx: Transaction, job_ids: Collection[JobId], lease_seconds: float) -> None:
    """Turn the offers of these jobs into leases of `lease_seconds` seconds, or renew leases that were accepted before."""
    if job_ids:
        await tx.execute(SQL["accept"], sorted(job_ids), lease_seconds)


async def note_started(tx: Transaction, started: Mapping[JobId, int]) -> None:
    """Store in the leases that the payloads began. `started` has the number of the start in each job's history."""
    if started:
        ids = sorted(started)
        await tx.execute(SQL["started"], ids, [started[job_id] for job_id in ids])


async def finish(tx: Transaction, ended: Sequence[AttemptEnd]) -> None:
    """Store ended attempts together with the history entries that their leases hold, and delete the leases."""
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
    """Return the attempts whose results are already recorded for the same pilot. A repeated report of them is acknowledged again."""
    if not reported:
        return set()
    columns = list(zip(*reported, strict=True))
    return {AttemptId(row["job_id"], row["epoch"]) for row in await tx.fetch(SQL["recorded"], *columns)}


async def expired(tx: Transaction, limit: int) -> list[JobId]:
    """Return up to `limit` jobs whose lease has expired by the database's clock, longest expired first."""
    return [row["job_id"] for row in await tx.fetch(SQL["expired"], limit)]


async def clock_set(tx: Transaction, step_seconds: float, longest_seconds: float) -> None:
    """Move the ends of leases by `step_seconds`, the step by which the database's clock was set.

    A repeated call changes nothing. A lease moves only while it has expired after a forward step. After a backward step
    it moves only while it ends later than `longest_seconds` from now.
    """
    await tx.execute(SQL["clock_set"], step_seconds, longest_seconds)


async def of_pilots(tx: Transaction, pilot_ids: Sequence[PilotId]) -> list[JobId]:
    """Return the jobs that these pilots hold by offers or leases."""
    return [row["job_id"] for row in await tx.fetch(SQL["of_pilots"], pilot_ids)]
