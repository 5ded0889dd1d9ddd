"""Revocations in the database: tokens, subjects and pilots that every service refuses.

Services compare the revision number, and read all revocations again when it has changed.
"""

import asyncpg

from wms.auth.revocations import Revocation
from wms.db.database import Transaction
from wms.db.sql import load
from wms.errors import shown

SQL = load(__file__)


async def revision(tx: Transaction) -> int:
    """Return how often revocations were changed."""
    (row,) = await tx.fetch(SQL["revision"])
    return int(row["number"])


async def in_force(tx: Transaction) -> list[Revocation]:
    """Return all revocations that have not expired and were not lifted."""
    return [Revocation(row["kind"], row["value"]) for row in await tx.fetch(SQL["in_force"])]


async def listed(tx: Transaction, after: int, limit: int) -> list[asyncpg.Record]:
    """Return rows of up to `limit` revocations in force, newest first. The first `after` ones are skipped."""
    return await tx.fetch(SQL["listed"], after, limit)


async def revoke(
    tx: Transaction, revoked: Revocation, by: str, reason: str, seconds: float | None = None
) -> None:
    """Revoke a token, subject or pilot for `seconds` seconds; None: until it is lifted. `by` is the operator."""
    await tx.execute(SQL["revoke"], revoked.kind, revoked.value, shown(by), shown(reason), seconds)
    await _changed(tx)


async def lift(tx: Transaction, revoked: Revocation) -> bool:
    """End a revocation; return whether there was one."""
    found = await tx.execute(SQL["lift"], revoked.kind, revoked.value)
    await _changed(tx)
    return found > 0


async def forget(tx: Transaction) -> int:
    """Delete expired revocations; return the number of deleted ones."""
    return await tx.execute(SQL["forget"])


async def _changed(tx: Transaction) -> None:
    await tx.execute(SQL["changed"])
