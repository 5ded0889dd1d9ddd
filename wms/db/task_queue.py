"""Task queues in the database: waiting jobs of one owner with equal requirements.

A queue is found or created by a key, and removed after it was empty for a configured time.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from wms.db import waiting_limits
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId, TaskQueueId
from wms.matching.grouping import Requirements
from wms.messages import queue_changes

SQL = load(__file__)

Entering = tuple[TaskQueueId, float, JobId]
"""A job that begins to wait: its task queue, the priority that its user gave it, and its id."""

IDS_IN_A_MESSAGE = 10_000
"""The most job ids in one message to the matchers."""


async def find_or_make(tx: Transaction, by_key: Mapping[bytes, Requirements]) -> dict[bytes, TaskQueueId]:
    """Return the task queue for each key, which is a digest of the requirements. Missing queues are created.

    The queues cannot be removed before the transaction ends.
    """
    rows = await tx.fetch(SQL["find"], sorted(by_key))
    found = {row["key"]: row["tq_id"] for row in rows}
    missing = sorted(by_key.keys() - found.keys())
    if missing:
        needed = [by_key[each] for each in missing]
        rows = await tx.fetch(
            SQL["make"],
            missing,
            [each.owner for each in needed],
            [each.owner_group for each in needed],
            [each.vo for each in needed],
            [each.cpu_segment for each in needed],
            [msgspec.json.encode(each).decode() for each in needed],
        )
        found.update({row["key"]: row["tq_id"] for row in rows})
    return found


async def keep(tx: Transaction, tq_ids: Iterable[TaskQueueId]) -> None:
    """Keep these queues from removal until the transaction ends, and restore those already removed, because jobs return to the queues.

    For their owners, groups and VOs, the number of jobs that may still begin to wait must be counted again (`wms.db.waiting_limits`).
    """
    ids = sorted(set(tq_ids))
    rows = await tx.fetch(SQL["keep"], ids)
    removed = [row["tq_id"] for row in rows if row["removed"]]
    if removed:
        await tx.execute(SQL["revive"], removed)
    await waiting_limits.forget(tx, ids)


READ_AT_ONCE = 1_000_000
"""How many characters of requirements are decoded before other callbacks of the event loop run."""


async def read(tx: Transaction, tq_ids: Iterable[TaskQueueId]) -> dict[TaskQueueId, Requirements]:
    """Return the requirements of these task queues. Unknown queues are absent."""
    found: dict[TaskQueueId, Requirements] = {}
    characters = 0
    for row in await tx.fetch(SQL["read"], sorted(set(tq_ids))):
        text = row["requirements"]
        found[row["tq_id"]] = msgspec.json.decode(text, type=Requirements)
        if (characters := characters + len(text)) > READ_AT_ONCE:
            characters = 0
            await asyncio.sleep(0)
    return found


def tell_entered(tx: Transaction, entering: Sequence[Entering]) -> None:
    """Send the matchers messages on jobs that begin to wait in queues."""
    for start in range(0, len(entering), IDS_IN_A_MESSAGE):
        groups: dict[tuple[TaskQueueId, float], list[JobId]] = {}
        for tq_id, priority, job_id in entering[start : start + IDS_IN_A_MESSAGE]:
            groups.setdefault((tq_id, priority), []).append(job_id)
        levels = tuple((*queue_and_priority, tuple(ids)) for queue_and_priority, ids in groups.items())
        tx.send(queue_changes.TOPIC, "", queue_changes.JobsEntered(levels=levels))


def tell_left(tx: Transaction, job_ids: Sequence[JobId]) -> None:
    """Send the matchers messages on jobs that no longer wait."""
    for start in range(0, len(job_ids), IDS_IN_A_MESSAGE):
        tx.send(
            queue_changes.TOPIC,
            "",
            queue_changes.Left(job_ids=tuple(job_ids[start : start + IDS_IN_A_MESSAGE])),
        )


def tell_swept(
    tx: Transaction,
    tq_id: TaskQueueId,
    requirements: Requirements,
    user_priority: float,
    swept: tuple[int, int],
) -> None:
    """Send the matchers a message on a range of jobs of an array that begin to wait. `swept` is their first and last id."""
    entered = queue_changes.Entered(
        tq_id=tq_id, requirements=requirements, user_priority=user_priority, job_ids=(), ranges=(swept,)
    )
    tx.send(queue_changes.TOPIC, "", entered)


async def remove_long_empty(tx: Transaction, idle_seconds: float) -> int:
    """Remove up to 500 queues that were empty for `idle_seconds` seconds; return the number of removed queues.

    A queue in which a job arrives meanwhile is not removed.
    """
    await tx.execute(SQL["mark_empty"])
    rows = await tx.fetch(SQL["lock_long_empty"], idle_seconds)
    ids = [row["tq_id"] for row in rows]
    return await tx.execute(SQL["remove"], ids) if ids else 0
