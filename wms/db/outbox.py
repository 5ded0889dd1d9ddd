"""The outbox: messages of committed transactions until the broker has acknowledged them."""

from collections.abc import Sequence

from wms.db.database import Parcel, Transaction
from wms.db.sql import load

SQL = load(__file__)


async def delete(tx: Transaction, outbox_ids: Sequence[int]) -> None:
    """Delete messages that the broker has."""
    await tx.execute(SQL["delete"], outbox_ids)


async def take_due(tx: Transaction, limit: int, for_seconds: float) -> list[Parcel]:
    """Take messages that have waited too long. Without a cursor, so that none is ever passed over."""
    rows = await tx.fetch(SQL["take_due"], limit, for_seconds)
    rows.sort(key=lambda row: row["outbox_id"])
    return [Parcel(row["outbox_id"], row["topic"], row["keys"], row["payloads"]) for row in rows]


async def backlog(tx: Transaction) -> tuple[int, float]:
    """Return how many parcels wait and for how many seconds the oldest has been due."""
    row = await tx.fetchrow(SQL["backlog"])
    assert row is not None
    return row["parcels"], row["overdue_seconds"]
