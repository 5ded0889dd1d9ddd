"""Wait reasons in the database: for each task queue, why its jobs wait. One reason applies to all its waiting jobs."""

from collections.abc import Collection, Sequence

import asyncpg
import msgspec

from wms.db import ad
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId, JobId, TaskQueueId
from wms.job.wait_reason_codes import WaitCode
from wms.provisioning.known_elements import KnownElement, PilotCounts

SQL = load(__file__)


class ReportedReason(msgspec.Struct, frozen=True, kw_only=True):
    """The wait reason of a task queue that was stored last."""

    code: str
    chance: float
    """How often a free slot draws this queue rather than others, from 0 (never) to 1 (always)."""
    age_seconds: float
    """Seconds since the queue's reason code last changed."""


class QueueWaitReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why the jobs of a task queue wait, to be stored by `write`."""

    tq_id: TaskQueueId
    code: WaitCode
    text: str
    """The reason in a sentence for people."""
    chance: float
    """How often a free slot draws this queue rather than others, from 0 (never) to 1 (always)."""


async def may_look(tx: Transaction) -> bool:
    """Try to take the lock for finding wait reasons until the transaction ends. Return False if another transaction holds it."""
    return bool(await tx.fetchval(SQL["may_look"]))


async def known(tx: Transaction) -> list[KnownElement]:
    """Return every computing element that has an ad, and whether the ad is still valid."""
    rows = {CeId(row["site"], row["ce"]): row for row in await tx.fetch(SQL["known"])}
    found = await ad.elements(tx, list(rows.values()))
    return [KnownElement(element, rows[place]["fresh"]) for place, element in found.items()]


async def pilot_counts(tx: Transaction) -> dict[tuple[str, str, str], PilotCounts]:
    """Return the numbers of live pilots that are not tied to one job, and of their slots, by site, computing element and VO."""
    return {
        (row["site"], row["ce"], row["vo"]): PilotCounts(
            row["running"], row["coming"], row["slots"], row["free_slots"]
        )
        for row in await tx.fetch(SQL["crews"])
    }


async def read(tx: Transaction) -> dict[TaskQueueId, ReportedReason]:
    """Return the wait reasons of all task queues that were stored last."""
    return {
        row["tq_id"]: ReportedReason(code=row["code"], chance=row["chance"], age_seconds=row["age"])
        for row in await tx.fetch(SQL["read"])
    }


async def write(tx: Transaction, reasons: Sequence[QueueWaitReason]) -> None:
    """Store the wait reasons of these task queues, in place of earlier ones."""
    ordered = sorted(reasons, key=lambda each: each.tq_id)
    if ordered:
        await tx.execute(
            SQL["write"],
            [each.tq_id for each in ordered],
            [each.code for each in ordered],
            [each.text for each in ordered],
            [each.chance for each in ordered],
        )


async def forget(tx: Transaction, tq_ids: Collection[TaskQueueId]) -> None:
    """Delete the wait reasons of these queues, in which no job waits any more."""
    if tq_ids:
        await tx.execute(SQL["forget"], sorted(tq_ids))


async def of_jobs(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, asyncpg.Record]:
    """Return rows with code and text of the wait reason of each of these jobs. Jobs that do not wait are absent."""
    return {row["job_id"]: row for row in await tx.fetch(SQL["of_jobs"], job_ids)}


async def chance(tx: Transaction, tq_id: TaskQueueId) -> float:
    """Return how often a free slot draws this queue rather than others, from 0 (never) to 1 (always); 1 if unknown."""
    found = await tx.fetchval(SQL["chance"], tq_id)
    return 1.0 if found is None else float(found)
