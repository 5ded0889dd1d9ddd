"""Attempts, the times that a job was given to a pilot, and their leases in the database. Callers first lock the rows of the jobs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from wms.db.columns import dense, sparse
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import AttemptId, Epoch, JobId, PilotId
from wms.job.job import Outcome
from wms.job.reasons import Code
from wms.messages.reports import Usage, UsageOverTime

SQL = load(__file__)


NOTHING_USED = Usage()
"""The usage of an attempt that reported none: all zero."""


class AttemptEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of one attempt of a job, to be stored by `finish`: its outcome, reason, usage and the last lines of its output."""

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
    stdout_from: int | None = None
    """How many bytes the payload printed before `stdout_tail`; None: not known."""
    stderr_from: int | None = None
    accepted: bool = False
    """Whether the pilot accepts the offer in the transaction that also ends the attempt."""
    ran: bool = False
    """Whether the payload began to run, even if its start was never reported."""
    start_seq: int | None = None
    """The number of the payload's start in the job's history. None if the lease already has that number, or the payload never started."""
    slot_seconds: float = 0.0
    """How long the attempt took its slots, as the pilot measured. It is not stored with the attempt. 0: not known."""
    end_seq: int | None = None
    """The number of the job's end in its history; None if the job goes on after this attempt."""


async def accept(tx: Transaction, job_ids: Collection[JobId], lease_seconds: float) -> None:
    """Turn the offers of these jobs into leases of `lease_seconds` seconds. Leases that were accepted before are renewed to the same time."""
    if job_ids:
        await tx.execute(SQL["accept"], sorted(job_ids), lease_seconds)


async def note_started(tx: Transaction, started: Mapping[JobId, int]) -> None:
    """Store in the leases of jobs that their payloads began now. `started` maps each job to the number of the start in its history."""
    if started:
        ids = sorted(started)
        await tx.execute(SQL["started"], ids, [started[job_id] for job_id in ids])


async def note_usage(tx: Transaction, said: Sequence[tuple[PilotId, UsageOverTime]]) -> None:
    """Store what attempts used over time, in place of what was stored. A report of a pilot that does not hold the job is ignored."""
    if said:
        rows = (
            (each.job_id, each.epoch, pilot, msgspec.json.encode(each.points).decode())
            for pilot, each in said
        )
        await tx.execute(SQL["note_usage"], *dense(rows))


async def finish(tx: Transaction, ended: Sequence[AttemptEnd]) -> None:
    """Store ended attempts and delete their leases. The job's history gets the entries that were stored in the lease so far.

    An attempt whose lease is gone is ignored.
    """
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
        ended.stdout_from,
        ended.stderr_from,
    )


async def recorded(tx: Transaction, reported: Sequence[tuple[JobId, Epoch, PilotId]]) -> set[AttemptId]:
    """Return those of these attempts whose results are stored already, as reported by the same pilot.

    A repeated report of such a result needs only an acknowledgement.
    """
    if not reported:
        return set()
    columns = list(zip(*reported, strict=True))
    return {AttemptId(row["job_id"], row["epoch"]) for row in await tx.fetch(SQL["recorded"], *columns)}


async def failed(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, int]:
    """Return how many attempts of each of these jobs failed since its user last ordered that it starts anew. Jobs without any are left out."""
    if not job_ids:
        return {}
    return {row["job_id"]: row["attempts"] for row in await tx.fetch(SQL["failed"], job_ids)}


async def expired(tx: Transaction, limit: int) -> list[JobId]:
    """Return up to `limit` jobs whose lease has expired by the database's clock; the lease that expired first comes first."""
    return [row["job_id"] for row in await tx.fetch(SQL["expired"], limit)]


async def clock_set(tx: Transaction, step_seconds: float, longest_seconds: float) -> None:
    """Correct the ends of leases by `step_seconds`, after the database's clock was set by that step.

    After a step forward, leases that have expired move. After a step back, those move that end later than `longest_seconds` from now. A
    repeated call changes nothing.
    """
    await tx.execute(SQL["clock_set"], step_seconds, longest_seconds)


async def of_pilots(tx: Transaction, pilot_ids: Sequence[PilotId]) -> list[JobId]:
    """Return the jobs that these pilots hold, whether only offered or accepted."""
    return [row["job_id"] for row in await tx.fetch(SQL["of_pilots"], pilot_ids)]
