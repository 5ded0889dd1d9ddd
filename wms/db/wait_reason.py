"""Wait reasons of task queues: one reason applies to all waiting jobs of a queue."""

from collections.abc import Collection, Sequence

import asyncpg
import msgspec

from wms.db import ad
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId, JobId, TaskQueueId
from wms.job.reasons import Wait
from wms.provisioning.known_elements import KnownElement, PilotCounts

SQL = load(__file__)


class ReportedReason(msgspec.Struct, frozen=True, kw_only=True):
    """The last published wait reason of a queue."""

    code: str
    chance: float
    """The share of the draws for free slots that goes to the queue, from 0 to 1."""
    age_seconds: float
    """Seconds since the code of the reason last changed."""


class QueueWaitReason(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why the jobs of a task queue wait."""

    tq_id: TaskQueueId
    code: Wait
    text: str
    """The explanation for people."""
    chance: float
    """The share of the draws for free slots that goes to the queue, from 0 to 1."""


async def may_look(tx: Transaction) -> bool:
    """Take the lock for finding wait reasons until the transaction ends; return False if another transaction holds it."""
    return bool(await tx.fetchval(SQL["may_look"]))


async def known(tx: Transaction) -> list[KnownElement]:
    """Return every stored computing element, and whether its ad is still valid."""
    rows = {CeId(row["site"], row["ce"]): row for row in await tx.fetch(SQL["known"])}
    found = await ad.elements(tx, list(rows.values()))
    return [KnownElement(element, rows[place]["fresh"]) for place, element in found.items()]


async def crews(tx: Transaction) -> dict[tuple[str, str, str], PilotCounts]:
    """Return the counts of live pilots by site, computing element and VO."""
    return {
        (row["site"], row["ce"], row["vo"]): PilotCounts(
            row["running"], row["coming"], row["slots"], row["free_slots"]
        )
        for row in await tx.fetch(SQL["crews"])
    }


async def read(tx: Transaction) -> dict[TaskQueueId, ReportedReason]:
    """Return the last published wait reasons of all queues."""
    return {
        row["tq_id"]: ReportedReason(code=row["code"], chance=row["chance"], age_seconds=row["age"])
        for row in await tx.fetch(SQL["read"])
    }


async def write(tx: Transaction, reasons: Sequence[QueueWaitReason]) -> None:
    """Store the wait reasons of these queues."""
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
    """Return code and text of the wait reasons of the given jobs; jobs that do not wait are absent."""
    return {row["job_id"]: row for row in await tx.fetch(SQL["of_jobs"], job_ids)}


async def chance(tx: Transaction, tq_id: TaskQueueId) -> float:
    """Return the share of the draws for free slots that goes to a queue, from 0 to 1; 1 if it is unknown."""
    found = await tx.fetchval(SQL["chance"], tq_id)
    return 1.0 if found is None else float(found)
