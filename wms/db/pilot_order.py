"""Users' orders for private pilots in the database: how many pilots each order lacks, and why.

A private pilot runs only jobs of the user who ordered it, or of that user's group.
"""

from collections.abc import Mapping, Sequence

import asyncpg

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load
from wms.provisioning.private import PilotOrder

SQL = load(__file__)


async def insert(tx: Transaction, order: PilotOrder, within_seconds: float) -> int:
    """Store an order for private pilots, which expires after `within_seconds` seconds; return its number."""
    columns = (order.vo, order.owner_group, order.owner, order.group_wide, order.site, order.ce)
    order_id: int = await tx.fetchval(SQL["insert"], *columns, order.missing, within_seconds)
    return order_id


async def open_orders(tx: Transaction) -> list[PilotOrder]:
    """Return the orders of all users that are still valid and lack pilots, oldest first."""
    return [PilotOrder(**row) for row in await tx.fetch(SQL["open"])]


async def missing(tx: Transaction, vo: str, owner_group: str, owner: str) -> tuple[int, int]:
    """Return two numbers: how many valid orders of this owner lack pilots, and how many pilots they lack in all."""
    row = await tx.fetchrow(SQL["missing"], vo, owner_group, owner)
    return (row["orders"], row["pilots"]) if row else (0, 0)


async def hold(tx: Transaction, why: Mapping[int, str]) -> None:
    """Store why no pilot could be sent for orders. `why` maps the number of each order to a text."""
    if why:
        await tx.execute(SQL["hold"], list(why), list(why.values()))


async def listed(tx: Transaction, scope: Scope, after: int, limit: int) -> list[asyncpg.Record]:
    """Return the rows of up to `limit` orders that the user with this scope may see, newest first. The first `after` ones are skipped."""
    return await tx.fetch(SQL["list"], scope.owner, scope.group, scope.vo, after, limit)


async def withdraw(tx: Transaction, scope: Scope, order_ids: Sequence[int]) -> list[int]:
    """Withdraw those of these open orders that the user with this scope may withdraw. Return the numbers of the withdrawn orders.

    An empty `order_ids` means all orders.
    """
    rows = await tx.fetch(SQL["withdraw"], scope.owner, scope.group, scope.vo, order_ids)
    return sorted(row["order_id"] for row in rows)


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` orders that expired more than `age` seconds ago; return the number of deleted orders."""
    return await tx.execute(SQL["forget"], age, limit)
