"""How long the jobs of each task queue take a slot, in the database."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import TaskQueueId
from wms.matching.run_time import RunTime

SQL = load(__file__)


async def read(tx: Transaction, tq_ids: Iterable[TaskQueueId]) -> dict[TaskQueueId, RunTime]:
    """Return the run times of these queues. Queues of which none is known are absent."""
    rows = await tx.fetch(SQL["read"], sorted(tq_ids))
    return {row["tq_id"]: RunTime(row["mean"], row["spread"]) for row in rows}


async def write(tx: Transaction, found: Mapping[TaskQueueId, RunTime]) -> None:
    """Store the run times of queues."""
    if found:
        ids = sorted(found)
        means, spreads = [found[each].mean for each in ids], [found[each].spread for each in ids]
        await tx.execute(SQL["write"], ids, means, spreads)


async def changed(
    tx: Transaction, since: datetime | None
) -> tuple[dict[TaskQueueId, RunTime], datetime | None]:
    """Return the run times stored since a time, all if it is None, and the time from which to ask on.

    Transactions commit late, so some may be returned twice.
    """
    rows = await tx.fetch(SQL["changed"], since)
    latest = max((row["changed_at"] for row in rows), default=since)
    return {row["tq_id"]: RunTime(row["mean"], row["spread"]) for row in rows}, latest
