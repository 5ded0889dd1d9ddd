"""Why task queues wait: one reason for all jobs of a queue, kept by whoever looks, shown with its jobs."""

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
    """What was last told of a queue."""

    code: str
    chance: float
    age_seconds: float
    """Since the code is what it is."""


class QueueWaitReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a queue waits."""

    tq_id: TaskQueueId
    code: Wait
    text: str
    chance: float


async def may_look(tx: Transaction) -> bool:
    """Return whether this transaction is the one that looks why queues wait: one at a time is enough."""
    return bool(await tx.fetchval(SQL["may_look"]))


async def known(tx: Transaction) -> list[KnownElement]:
    """Return every computing element within memory."""
    rows = {CeId(row["site"], row["ce"]): row for row in await tx.fetch(SQL["known"])}
    found = await ad.elements(tx, list(rows.values()))
    return [KnownElement(element, rows[place]["fresh"]) for place, element in found.items()]


async def crews(tx: Transaction) -> dict[tuple[str, str, str], PilotCounts]:
    """Return the pilots by site, computing element and VO."""
    return {
        (row["site"], row["ce"], row["vo"]): PilotCounts(
            row["running"], row["coming"], row["slots"], row["free_slots"]
        )
        for row in await tx.fetch(SQL["crews"])
    }


async def read(tx: Transaction) -> dict[TaskQueueId, ReportedReason]:
    """Return what was last told of all queues."""
    return {
        row["tq_id"]: ReportedReason(code=row["code"], chance=row["chance"], age_seconds=row["age"])
        for row in await tx.fetch(SQL["read"])
    }


async def write(tx: Transaction, reasons: Sequence[QueueWaitReason]) -> None:
    """Write why these queues wait."""
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
    """Forget queues in which nothing waits."""
    if tq_ids:
        await tx.execute(SQL["forget"], sorted(tq_ids))


async def of_jobs(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, asyncpg.Record]:
    """Return why these jobs wait (code and text), of those that do."""
    return {row["job_id"]: row for row in await tx.fetch(SQL["of_jobs"], job_ids)}


async def chance(tx: Transaction, tq_id: TaskQueueId) -> float:
    """Return the part of the draws for free slots that falls to a queue; 1 while nobody has looked."""
    found = await tx.fetchval(SQL["chance"], tq_id)
    return 1.0 if found is None else float(found)
