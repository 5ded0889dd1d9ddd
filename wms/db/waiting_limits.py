"""Room under limits on waiting jobs: counted at intervals, and reduced by each submission.

Jobs that leave the queues do not restore it, so that the room is never overestimated; when it seems used up it is
counted again. Jobs that return to the queues make it unknown. So claims, the most frequent operation, do not touch
it.
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
    """The room that is left, and when it was counted by the database's clock."""

    left: int
    counted_at: datetime


class LockedRooms(msgspec.Struct, frozen=True):
    """Rooms that the transaction has locked, and the database's time then."""

    rooms: dict[Whose, WaitingRoom]
    at: datetime


async def lock(tx: Transaction, whose: Collection[Whose]) -> LockedRooms:
    """Lock rooms, always in the same order; missing ones are created and must be counted."""
    columns = [[attribute for attribute, _ in sorted(whose)], [value for _, value in sorted(whose)]]
    await tx.execute(SQL["make"], *columns)
    rows = await tx.fetch(SQL["lock"], *columns)
    rooms = {(row["attribute"], row["value"]): WaitingRoom(row["room"], row["counted_at"]) for row in rows}
    return LockedRooms(rooms, max(row["at"] for row in rows))


async def settle(tx: Transaction, rooms: Mapping[Whose, WaitingRoom]) -> None:
    """Store the room that is left of locked rooms."""
    await tx.execute(
        SQL["settle"],
        [attribute for attribute, _ in rooms],
        [value for _, value in rooms],
        [room.left for room in rooms.values()],
        [room.counted_at for room in rooms.values()],
    )


async def forget(tx: Transaction, tq_ids: Iterable[TaskQueueId]) -> None:
    """Make the rooms of these queues' owners unknown, as jobs return to them."""
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
