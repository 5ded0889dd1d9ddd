"""The log of operators' commands in the database: who ordered which action, on which subject, when and why."""

from collections.abc import Sequence

import asyncpg

from wms.db.database import Transaction
from wms.db.sql import load
from wms.errors import shown

SQL = load(__file__)


async def record(
    tx: Transaction, operator: str, action: str, subjects: Sequence[str], reason: str = ""
) -> None:
    """Store that an operator ordered `action`: one log entry for each subject. Texts are made safe to display."""
    for subject in subjects:
        await tx.execute(SQL["record"], shown(operator), action, shown(subject), shown(reason))


async def latest(tx: Transaction, limit: int) -> list[asyncpg.Record]:
    """Return the last `limit` log entries of all operators, newest first."""
    return await tx.fetch(SQL["latest"], limit)


async def forget(tx: Transaction, age: float) -> int:
    """Delete log entries older than `age` seconds; return the number of deleted entries."""
    return await tx.execute(SQL["forget"], age)
