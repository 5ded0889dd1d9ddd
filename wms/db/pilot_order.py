"""Orders for private pilots: those of users, how many pilots they lack, and why."""

from collections.abc import Mapping, Sequence

import asyncpg

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load
from wms.provisioning.private import PilotOrder

SQL = load(__file__)


async def insert(tx: Transaction, order: PilotOrder, within_seconds: float) -> int:
    """Store an order that is valid for so many seconds; return its number."""
    columns = (order.vo, order.owner_group, order.owner, order.group_wide, order.site, order.ce)
    order_id: int = await tx.fetchval(SQL["insert"], *columns, order.missing, within_seconds)
    return order_id


async def open_orders(tx: Transaction) -> list[PilotOrder]:
    """Return the orders that lack pilots, the oldest first."""
    return [PilotOrder(**row) for row in await tx.fetch(SQL["open"])]


async def missing(tx: Transaction, vo: str, owner_group: str, owner: str) -> tuple[int, int]:
    """Return how many orders of one owner lack pilots, and how many pilots these lack."""
    row = await tx.fetchrow(SQL["missing"], vo, owner_group, owner)
    return (row["orders"], row["pilots"]) if row else (0, 0)


async def hold(tx: Transaction, why: Mapping[int, str]) -> None:
    """Store why no pilot could be sent for orders."""
    if why:
        await tx.execute(SQL["hold"], list(why), list(why.values()))


async def listed(tx: Transaction, scope: Scope, after: int, limit: int) -> list[asyncpg.Record]:
    """Return the orders in reach for people to look at: at most so many after the first `after`."""
    return await tx.fetch(SQL["list"], scope.owner, scope.group, scope.vo, after, limit)


async def withdraw(tx: Transaction, scope: Scope, order_ids: Sequence[int]) -> list[int]:
    """Withdraw these orders, as far as they are in reach; without names all in reach. Return which."""
    rows = await tx.fetch(SQL["withdraw"], scope.owner, scope.group, scope.vo, order_ids)
    return sorted(row["order_id"] for row in rows)


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete some orders that expired so many seconds ago; return how many."""
    return await tx.execute(SQL["forget"], age, limit)
