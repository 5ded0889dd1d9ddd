"""Statistics of task queues, written from a matcher's memory, so that readers need not count the jobs.

One matcher at a time writes the state of the queues; another takes over when it falls silent. Every matcher adds the jobs that it matched.
The figures are about one second old. They are absent while no matcher runs.
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
"""Seconds without a write after which another matcher may take over the statistics."""
FADING_SECONDS = 600.0
"""The time in seconds after which a match counts 1/e in the count of recent matches."""


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one task queue: waiting jobs, its weight in the matchers' random draw of a queue, and jobs at each user priority."""

    tq_id: TaskQueueId
    waiting: int
    weight: float
    levels: tuple[Level, ...]


class QueueNow(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one task queue, and how many of its jobs were matched lately."""

    waiting: int
    weight: float
    levels: tuple[Level, ...]
    served: Served
    law: Law
    """The rule by which the matchers draw a queue at random."""


class QueueDepth(msgspec.Struct, frozen=True):
    """How many jobs wait in a task queue, and its weight in the matchers' random draw of a queue."""

    jobs: int
    weight: float


async def watch(tx: Transaction, matcher: str, law: Law) -> bool:
    """Try to become, or remain, the one matcher that writes statistics of queues; return whether that succeeded.

    The role lasts for `SILENT_SECONDS` after each successful call. `law` is the rule by which matchers draw.
    """
    return bool(await tx.fetchval(SQL["watch"], matcher, law, SILENT_SECONDS))


async def write(tx: Transaction, states: Iterable[QueueState]) -> None:
    """Store the states of these queues; queues that no longer exist are skipped."""
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
    """Delete the statistics of all queues except these."""
    await tx.execute(SQL["keep_only"], tq_ids)


async def forget(tx: Transaction, tq_ids: Sequence[TaskQueueId]) -> None:
    """Delete the statistics of these queues."""
    if tq_ids:
        await tx.execute(SQL["forget"], sorted(tq_ids))


async def serve(tx: Transaction, matched: Mapping[TaskQueueId, int]) -> None:
    """Add the jobs that were matched just now, by queue, to the queues' counts of recent matches, in which older matches fade."""
    if matched:
        ordered = sorted(matched.items())
        await tx.execute(
            SQL["serve"], [tq_id for tq_id, _ in ordered], [count for _, count in ordered], FADING_SECONDS
        )


async def is_watched(tx: Transaction) -> bool:
    """Return whether a matcher writes statistics at present."""
    return bool(await tx.fetchval(SQL["is_watched"], SILENT_SECONDS))


async def waiting(tx: Transaction) -> dict[TaskQueueId, QueueDepth] | None:
    """Return the queues in which jobs wait; None while no matcher writes statistics."""
    if not await is_watched(tx):
        return None
    return {row["tq_id"]: QueueDepth(row["waiting"], row["weight"]) for row in await tx.fetch(SQL["waiting"])}


async def read(tx: Transaction, tq_id: TaskQueueId) -> QueueNow | None:
    """Return the state of a queue; None if it has no statistics, or if no matcher writes them."""
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
