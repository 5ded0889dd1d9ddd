"""Room left under limits on waiting jobs: counted now and then, and what is submitted is taken off it.

What leaves the queues is not put back, so that the room is never more than there is; where it seems used up it is counted
anew. What returns to the queues makes it unknown. So claims, the most frequent of all, touch it not.
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
"""An attribute and its value: ("owner", "alice")."""


class WaitingRoom(NamedTuple):
    """What is left, and when it was counted by the database's clock."""

    left: int
    counted_at: datetime


class LockedRooms(msgspec.Struct, frozen=True):
    """The rooms that the transaction has locked, and the database's time then."""

    rooms: dict[Whose, WaitingRoom]
    at: datetime


async def lock(tx: Transaction, whose: Collection[Whose]) -> LockedRooms:
    """Lock rooms, in one order; one that is not there yet is made, to be counted."""
    columns = [[attribute for attribute, _ in sorted(whose)], [value for _, value in sorted(whose)]]
    await tx.execute(SQL["make"], *columns)
    rows = await tx.fetch(SQL["lock"], *columns)
    rooms = {(row["attribute"], row["value"]): WaitingRoom(row["room"], row["counted_at"]) for row in rows}
    return LockedRooms(rooms, max(row["at"] for row in rows))


async def settle(tx: Transaction, rooms: Mapping[Whose, WaitingRoom]) -> None:
    """Write what is left of locked rooms."""
    await tx.execute(
        SQL["settle"],
        [attribute for attribute, _ in rooms],
        [value for _, value in rooms],
        [room.left for room in rooms.values()],
        [room.counted_at for room in rooms.values()],
    )


async def forget(tx: Transaction, tq_ids: Iterable[TaskQueueId]) -> None:
    """Jobs return to these queues: the rooms of their owners are to be counted anew."""
    await tx.execute(SQL["forget"], sorted(set(tq_ids)))


async def waiting(tx: Transaction, whose: Whose) -> int:
    """Count the waiting jobs."""
    attribute, value = whose
    if attribute == "owner":
        counted: int = await tx.fetchval(SQL["of_owner"], value)
    else:
        group, vo = (value, None) if attribute == "owner_group" else (None, value)
        counted = await tx.fetchval(SQL["of_many"], group, vo)
    return counted
