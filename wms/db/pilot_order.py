"""Orders of users for private pilots: how many pilots each order still lacks, and why."""

from collections.abc import Mapping, Sequence

import asyncpg

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load
from wms.provisioning.private import PilotOrder

SQL = load(__file__)


async def insert(tx: Transaction, order: PilotOrder, within_seconds: float) -> int:
    """Store an order that expires after `within_seconds` seconds; return its number."""
    columns = (order.vo, order.owner_group, order.owner, order.group_wide, order.site, order.ce)
    order_id: int = await tx.fetchval(SQL["insert"], *columns, order.missing, within_seconds)
    return order_id


async def open_orders(tx: Transaction) -> list[PilotOrder]:
    """Return the valid orders that lack pilots, oldest first."""
    return [PilotOrder(**row) for row in await tx.fetch(SQL["open"])]


async def missing(tx: Transaction, vo: str, owner_group: str, owner: str) -> tuple[int, int]:
    """Return the number of an owner's orders that lack pilots, and the number of pilots that they lack."""
    row = await tx.fetchrow(SQL["missing"], vo, owner_group, owner)
    return (row["orders"], row["pilots"]) if row else (0, 0)


async def hold(tx: Transaction, why: Mapping[int, str]) -> None:
    """Store, by order number, why no pilot could be sent."""
    if why:
        await tx.execute(SQL["hold"], list(why), list(why.values()))


async def listed(tx: Transaction, scope: Scope, after: int, limit: int) -> list[asyncpg.Record]:
    """Return up to `limit` orders in the user's scope for a list, after the first `after`, newest first."""
    return await tx.fetch(SQL["list"], scope.owner, scope.group, scope.vo, after, limit)


async def withdraw(tx: Transaction, scope: Scope, order_ids: Sequence[int]) -> list[int]:
    """Withdraw these open orders, or all if no numbers are given, within the user's scope; return the withdrawn numbers."""
    rows = await tx.fetch(SQL["withdraw"], scope.owner, scope.group, scope.vo, order_ids)
    return sorted(row["order_id"] for row in rows)


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` orders that expired more than `age` seconds ago; return the number of deleted orders."""
    return await tx.execute(SQL["forget"], age, limit)
