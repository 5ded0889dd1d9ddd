"""Statistics of task queues from a matcher's memory, for all who would otherwise have to count the jobs.

One matcher at a time writes changes; another takes over when it falls silent. Every matcher adds the jobs that it
matched. The figures are about a second old, and absent while no matcher runs.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import TaskQueueId
from wms.matching.draw_law import Law
from wms.matching.queue_stats import Level, Served

SQL = load(__file__)

SILENT_SECONDS = 10.0
"""A matcher that has written nothing for so long is replaced."""
FADING_SECONDS = 600.0
"""The time constant of fading: matches of so long ago count 1/e."""


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one queue."""

    tq_id: TaskQueueId
    waiting: int
    weight: float
    levels: tuple[Level, ...]


class QueueNow(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one queue, and the rate at which it was served lately."""

    waiting: int
    weight: float
    levels: tuple[Level, ...]
    served: Served
    law: Law


class QueueDepth(msgspec.Struct, frozen=True):
    """How many jobs wait in a queue, and its weight in the draw."""

    jobs: int
    weight: float


async def watch(tx: Transaction, matcher: str, law: Law) -> bool:
    """Return whether this matcher is the one to write statistics; it then is for a while."""
    return bool(await tx.fetchval(SQL["watch"], matcher, law, SILENT_SECONDS))


async def write(tx: Transaction, states: Iterable[QueueState]) -> None:
    """Store the states of these queues."""
    ordered = sorted(states, key=lambda each: each.tq_id)
    if ordered:
        await tx.execute(
            SQL["write"],
            [each.tq_id for each in ordered],
            [each.waiting for each in ordered],
            [each.weight for each in ordered],
            [_encoded(each.levels) for each in ordered],
        )


async def keep_only(tx: Transaction, tq_ids: Sequence[TaskQueueId]) -> None:
    """Delete all other queues."""
    await tx.execute(SQL["keep_only"], tq_ids)


async def forget(tx: Transaction, tq_ids: Sequence[TaskQueueId]) -> None:
    """Delete these queues."""
    if tq_ids:
        await tx.execute(SQL["forget"], sorted(tq_ids))


async def serve(tx: Transaction, matched: Mapping[TaskQueueId, int]) -> None:
    """Add the numbers of jobs that were matched, by queue."""
    if matched:
        ordered = sorted(matched.items())
        await tx.execute(
            SQL["serve"], [tq_id for tq_id, _ in ordered], [count for _, count in ordered], FADING_SECONDS
        )


async def is_watched(tx: Transaction) -> bool:
    """Return whether a matcher writes statistics."""
    return bool(await tx.fetchval(SQL["is_watched"], SILENT_SECONDS))


async def waiting(tx: Transaction) -> dict[TaskQueueId, QueueDepth] | None:
    """Return the queues with waiting jobs; None while no matcher writes."""
    if not await is_watched(tx):
        return None
    return {row["tq_id"]: QueueDepth(row["waiting"], row["weight"]) for row in await tx.fetch(SQL["waiting"])}


async def read(tx: Transaction, tq_id: TaskQueueId) -> QueueNow | None:
    """Return the state of a queue; None while no matcher writes."""
    row = await tx.fetchrow(SQL["read"], tq_id, SILENT_SECONDS, FADING_SECONDS)
    if row is None:
        return None
    return QueueNow(
        waiting=row["waiting"],
        weight=row["weight"],
        levels=_decoded(row["levels"]),
        served=Served(
            faded_count=row["faded_count"],
            watched_seconds=row["watched_seconds"],
            fading_seconds=FADING_SECONDS,
        ),
        law=row["law"],
    )


def _encoded(levels: Sequence[Level]) -> str:
    return msgspec.json.encode([msgspec.structs.astuple(each) for each in levels]).decode()


def _decoded(text: str) -> tuple[Level, ...]:
    rows = msgspec.json.decode(text, type=list[tuple[float, int, int, int]])
    return tuple(
        Level(user_priority=priority, count=count, oldest=oldest, newest=newest)
        for priority, count, oldest, newest in rows
    )
