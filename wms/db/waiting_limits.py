"""Room under limits on waiting jobs: counted at intervals, and reduced by each submission.

Jobs that leave the queues do not restore the room, so that it is never overestimated. When it seems used up it is
counted again. Jobs that return to the queues make it unknown. So claims, the most frequent operation, never update it.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple, TypeAlias

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import TaskQueueId

SQL = load(__file__)

Whose: TypeAlias = tuple[str, str]
"""An attribute of jobs and its value, such as ("owner", "alice")."""


class WaitingRoom(NamedTuple):
    """The number of jobs that may still begin to wait, and the database's time when it was counted."""

    left: int
    counted_at: datetime


class LockedRooms(msgspec.Struct, frozen=True):
    """Rooms that the transaction has locked, and the database's time when they were locked."""

    rooms: dict[Whose, WaitingRoom]
    at: datetime


async def lock(tx: Transaction, whose: Collection[Whose]) -> LockedRooms:
    """Lock rooms, always in the same order. Missing rooms are created without a valid count, so that callers count them."""
    columns = [[attribute for attribute, _ in sorted(whose)], [value for _, value in sorted(whose)]]
    await tx.execute(SQL["make"], *columns)
    rows = await tx.fetch(SQL["lock"], *columns)
    rooms = {(row["attribute"], row["value"]): WaitingRoom(row["room"], row["counted_at"]) for row in rows}
    return LockedRooms(rooms, max(row["at"] for row in rows))


async def settle(tx: Transaction, rooms: Mapping[Whose, WaitingRoom]) -> None:
    """Store the remaining room of locked rooms."""
    await tx.execute(
        SQL["settle"],
        [attribute for attribute, _ in rooms],
        [value for _, value in rooms],
        [room.left for room in rooms.values()],
        [room.counted_at for room in rooms.values()],
    )


async def forget(tx: Transaction, tq_ids: Iterable[TaskQueueId]) -> None:
    """Make the rooms for the owners, groups and VOs of these queues unknown, since jobs return to the queues."""
    await tx.execute(SQL["forget"], sorted(set(tq_ids)))


async def waiting(tx: Transaction, whose: Whose) -> int:
    """Return the number of waiting jobs with this attribute value."""
    attribute, value = whose
    if attribute == "owner":
        counted: int = await tx.fetchval(SQL["of_owner"], value)
    else:
        group, vo = (value, None) if attribute == "owner_group" else (None, value)
        counted = await tx.fetchval(SQL["of_many"], group, vo)
    return counted
