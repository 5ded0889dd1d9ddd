"""Running instances of services, which divide the partitions among themselves."""

from collections.abc import Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import InstanceId

SQL = load(__file__)

DEAD_AFTER_SECONDS = 5.0
"""An instance without a heartbeat for so long has no partition any more."""

FORGOTTEN_AFTER_SECONDS = 3_600.0


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """The heartbeat of an instance."""

    instance_id: InstanceId
    service: str
    consumers: Sequence[str]
    host: str
    pid: int
    version: str
    health: str
    """JSON."""


async def beat(tx: Transaction, instance: Beat) -> dict[str, list[InstanceId]]:
    """Store a heartbeat; return the live instances of every consumer, in order."""
    await tx.execute(SQL["beat"], *msgspec.structs.astuple(instance))
    rows = await tx.fetch(SQL["sharers"], DEAD_AFTER_SECONDS)
    return {row["consumer"]: row["instances"] for row in rows}


async def leave(tx: Transaction, instance_id: InstanceId) -> None:
    """Give up all partitions."""
    await tx.execute(SQL["leave"], instance_id)
    await tx.execute(SQL["forget"], FORGOTTEN_AFTER_SECONDS)


async def instances(tx: Transaction) -> list[asyncpg.Record]:
    """Return every instance known, the dead ones too."""
    return await tx.fetch(SQL["all"], DEAD_AFTER_SECONDS)
