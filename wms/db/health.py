"""Health figures of a system beside heartbeats: unsent messages, silent pilots, connections."""

import asyncpg

from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


async def outbox(tx: Transaction) -> asyncpg.Record:
    """Return the number of `parcels` that are long due and not sent, and the `age` of the oldest in seconds."""
    return await _one(tx, SQL["outbox"])


async def pilots(tx: Transaction) -> asyncpg.Record:
    """Return how many `pilots` there are, how many are `running`, `silent`, and run `unheard`."""
    return await _one(tx, SQL["pilots"])


async def connections(tx: Transaction) -> asyncpg.Record:
    """Return how many connections are `open`, and how many there may be at `most`."""
    return await _one(tx, SQL["connections"])


async def _one(tx: Transaction, statement: str) -> asyncpg.Record:
    row = await tx.fetchrow(statement)
    assert row is not None
    return row
