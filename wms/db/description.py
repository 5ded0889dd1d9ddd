"""Job descriptions in the database: read, and replaced when the requirements of a stored job change."""

from collections.abc import Sequence

import msgspec

from wms.db import job
from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId, TaskQueueId
from wms.job.job import Job
from wms.job.reasons import Code, Reason

SQL = load(__file__)


class StoredDescription(msgspec.Struct, frozen=True):
    """The description of one job as the database holds it."""

    job_id: JobId
    description_id: int
    body: str
    """The description as JSON."""
    shared: bool
    """Whether the description belongs to the whole job array (sweep) that the job is of."""


class Requeued(msgspec.Struct, frozen=True):
    """A job whose description was changed: the stored one, the new one, and the task queue for its new requirements."""

    stored: StoredDescription
    body: str
    """The new description as JSON."""
    tq_id: TaskQueueId
    user_priority: float
    max_attempts: int


async def of_jobs(tx: Transaction, job_ids: Sequence[JobId]) -> list[StoredDescription]:
    """Return the stored descriptions of those of these jobs that have job rows. Jobs that are only in a block of an array are left out."""
    return [StoredDescription(*row) for row in await tx.fetch(SQL["of_jobs"], job_ids)]


async def replace(tx: Transaction, requeued: Sequence[Requeued]) -> None:
    """Store the new descriptions, queues, priorities and numbers of attempts of jobs that the caller has locked.

    A job that shares the description of its array gets a description of its own.
    """
    own = [each for each in requeued if not each.stored.shared]
    if own:
        rows = [(each.stored.description_id, each.body) for each in own]
        await tx.execute(SQL["rewrite"], *dense(rows))
    swept = [each for each in requeued if each.stored.shared]
    first = await job.reserve(tx, len(swept)) if swept else JobId(0)
    made = [JobId(first + n) for n in range(len(swept))]
    await job.describe(tx, made, [each.body for each in swept])
    ids = {each.stored.job_id: each.stored.description_id for each in own}
    ids |= {each.stored.job_id: new for each, new in zip(swept, made, strict=True)}
    await tx.execute(
        SQL["requeue"],
        *dense(
            (each.stored.job_id, ids[each.stored.job_id], each.tq_id, each.user_priority, each.max_attempts)
            for each in requeued
        ),
    )


async def last_reasons(tx: Transaction, jobs: Sequence[Job]) -> dict[JobId, tuple[Reason, str]]:
    """Return, for each job, the reason of the last entry in its history, and the user or service that caused the entry."""
    rows = await tx.fetch(
        SQL["last_moves"], [each.job_id for each in jobs], [each.event_seq for each in jobs]
    )
    return {row["job_id"]: (Reason(Code(row["reason"]), row["text"]), row["source"]) for row in rows}
