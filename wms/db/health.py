"""Health figures of the whole system beside heartbeats: unsent messages, silent pilots, database connections."""

import asyncpg

from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


async def outbox(tx: Transaction) -> asyncpg.Record:
    """Return the number of unsent `parcels` that are due for over 15 s, and the `age` of the oldest in seconds."""
    return await _one(tx, SQL["outbox"])


async def pilots(tx: Transaction) -> asyncpg.Record:
    """Return the number of live `pilots`: all, `running`, `silent` for over a minute, and `unheard`.

    An unheard pilot has never sent a message, though its element reported it as running over a minute ago.
    """
    return await _one(tx, SQL["pilots"])


async def connections(tx: Transaction) -> asyncpg.Record:
    """Return the number of `open` connections to the server, and the `most` that it allows."""
    return await _one(tx, SQL["connections"])


async def _one(tx: Transaction, statement: str) -> asyncpg.Record:
    row = await tx.fetchrow(statement)
    assert row is not None
    return row
