"""Orders of operators: who, what and when."""

from collections.abc import Sequence

import asyncpg

from wms.db.database import Transaction
from wms.db.sql import load
from wms.errors import shown

SQL = load(__file__)


async def record(
    tx: Transaction, operator: str, action: str, subjects: Sequence[str], reason: str = ""
) -> None:
    """Store an order for each subject."""
    for subject in subjects:
        await tx.execute(SQL["record"], shown(operator), action, shown(subject), shown(reason))


async def latest(tx: Transaction, limit: int) -> list[asyncpg.Record]:
    """Return the last orders, newest first."""
    return await tx.fetch(SQL["latest"], limit)


async def forget(tx: Transaction, age: float) -> int:
    """Delete orders that are so many seconds old; return how many."""
    return await tx.execute(SQL["forget"], age)
