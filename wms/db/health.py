"""Figures on the health of the whole system, for its status: unsent messages, silent pilots, database connections."""

import asyncpg

from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


async def outbox(tx: Transaction) -> asyncpg.Record:
    """Return a row with two figures of messages that are due but unsent for over 15 s.

    `parcels` is the number of outbox rows, `age` the seconds since the oldest of them was written.
    """
    return await _one(tx, SQL["outbox"])


async def pilots(tx: Transaction) -> asyncpg.Record:
    """Return a row with numbers of live pilots: `pilots` in all, `running`, `silent` for over a minute, and `unheard`.

    An unheard pilot has never sent a message, though its computing element reported it as running over a minute ago.
    """
    return await _one(tx, SQL["pilots"])


async def connections(tx: Transaction) -> asyncpg.Record:
    """Return a row of `open`, the connections to the Postgres server, and `most`, how many it allows."""
    return await _one(tx, SQL["connections"])


async def _one(tx: Transaction, statement: str) -> asyncpg.Record:
    row = await tx.fetchrow(statement)
    assert row is not None
    return row
