"""Keeps in a matcher's memory how long jobs of each task queue take a slot, as job managers learn it."""

from datetime import datetime

from wms.bounded_cache import BoundedCache
from wms.db import run_time
from wms.db.database import Database
from wms.ids import TaskQueueId

QUEUES_MOST = 100_000
"""Of how many queues, those last heard of, the run time is kept. So a matcher does not grow by queues that are long gone."""


class RunTimes:
    """The likely run time of each queue in seconds. Queues of which none is known are absent: their jobs count as long."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._since: datetime | None = None
        self.likely = BoundedCache[TaskQueueId, float](QUEUES_MOST)

    async def refresh(self) -> None:
        """Read what was stored since the last call."""
        async with self._db.transaction() as tx:
            found, self._since = await run_time.changed(tx, self._since)
        for tq_id, each in found.items():
            self.likely[tq_id] = each.likely
