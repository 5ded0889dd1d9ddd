"""The outbox: messages of committed transactions, kept in the database until Kafka has acknowledged them."""

from collections.abc import Sequence

from wms.db.database import Parcel, Transaction
from wms.db.sql import load

SQL = load(__file__)


async def delete(tx: Transaction, outbox_ids: Sequence[int]) -> None:
    """Delete the outbox rows of messages that Kafka has acknowledged."""
    await tx.execute(SQL["delete"], outbox_ids)


async def take_due(tx: Transaction, limit: int, for_seconds: float) -> list[Parcel]:
    """Return up to `limit` outbox rows whose messages are overdue. Other relays do not take these rows for `for_seconds` seconds."""
    rows = await tx.fetch(SQL["take_due"], limit, for_seconds)
    rows.sort(key=lambda row: row["outbox_id"])
    return [Parcel(row["outbox_id"], row["topic"], row["keys"], row["payloads"]) for row in rows]
