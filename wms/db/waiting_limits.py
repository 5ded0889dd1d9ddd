"""The room under limits on waiting jobs: how many more jobs may begin to wait. It is counted at intervals, and reduced by each submission.

Jobs that leave the queues do not increase the room, so that it is never overestimated. When it is used up, the jobs are counted again. When
jobs return to the queues, it becomes unknown until the next count. So claims, the most frequent operation, never update it.
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
"""The waiting jobs under a limit, as an attribute of jobs and its value, such as ("owner", "alice")."""


class WaitingRoom(NamedTuple):
    """How many more jobs may begin to wait, and the database's time when that was counted."""

    left: int
    counted_at: datetime


class LockedRooms(msgspec.Struct, frozen=True):
    """Rooms (numbers of jobs that may begin to wait) that a transaction has locked, and the database's time when it got the locks."""

    rooms: dict[Whose, WaitingRoom]
    at: datetime


async def lock(tx: Transaction, whose: Collection[Whose]) -> LockedRooms:
    """Lock the rooms of these attribute values until the transaction ends, and return them.

    A missing room is created as 0, counted in 1970, so that the caller counts the jobs anew.
    """
    columns = [[attribute for attribute, _ in sorted(whose)], [value for _, value in sorted(whose)]]
    await tx.execute(SQL["make"], *columns)
    rows = await tx.fetch(SQL["lock"], *columns)
    rooms = {(row["attribute"], row["value"]): WaitingRoom(row["room"], row["counted_at"]) for row in rows}
    return LockedRooms(rooms, max(row["at"] for row in rows))


async def settle(tx: Transaction, rooms: Mapping[Whose, WaitingRoom]) -> None:
    """Store the remaining rooms, which the transaction has locked."""
    await tx.execute(
        SQL["settle"],
        [attribute for attribute, _ in rooms],
        [value for _, value in rooms],
        [room.left for room in rooms.values()],
        [room.counted_at for room in rooms.values()],
    )


async def forget(tx: Transaction, tq_ids: Iterable[TaskQueueId]) -> None:
    """Make the rooms unknown for the owners, groups and VOs of these task queues, since jobs return to the queues."""
    await tx.execute(SQL["forget"], sorted(set(tq_ids)))


async def waiting(tx: Transaction, whose: Whose) -> int:
    """Return how many jobs wait of this owner, group or VO. An owner's jobs at the resource broker count too."""
    attribute, value = whose
    if attribute == "owner":
        counted: int = await tx.fetchval(SQL["of_owner"], value)
    else:
        group, vo = (value, None) if attribute == "owner_group" else (None, value)
        counted = await tx.fetchval(SQL["of_many"], group, vo)
    return counted
