"""Wait reasons of task queues: one for all jobs of a queue."""

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
    """The last published reason of a queue."""

    code: str
    chance: float
    age_seconds: float
    """Seconds since the code last changed."""


class QueueWaitReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a queue waits."""

    tq_id: TaskQueueId
    code: Wait
    text: str
    chance: float


async def may_look(tx: Transaction) -> bool:
    """Lock the look for reasons until the transaction ends; return False if another has the lock."""
    return bool(await tx.fetchval(SQL["may_look"]))


async def known(tx: Transaction) -> list[KnownElement]:
    """Return every known computing element."""
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
    """Return the last published reasons of all queues."""
    return {
        row["tq_id"]: ReportedReason(code=row["code"], chance=row["chance"], age_seconds=row["age"])
        for row in await tx.fetch(SQL["read"])
    }


async def write(tx: Transaction, reasons: Sequence[QueueWaitReason]) -> None:
    """Store why these queues wait."""
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
    """Delete queues without waiting jobs."""
    if tq_ids:
        await tx.execute(SQL["forget"], sorted(tq_ids))


async def of_jobs(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, asyncpg.Record]:
    """Return code and text of the wait reasons of those of these jobs that wait."""
    return {row["job_id"]: row for row in await tx.fetch(SQL["of_jobs"], job_ids)}


async def chance(tx: Transaction, tq_id: TaskQueueId) -> float:
    """Return the share of the draws for free slots that goes to a queue; 1 if unknown."""
    found = await tx.fetchval(SQL["chance"], tq_id)
    return 1.0 if found is None else float(found)
