"""Parses long requirements of new task queues outside the event loop, and then adds the queues to the index one by one."""

import time

import structlog

from services.matcher.index_sync import IndexSync
from wms.db.database import GONE, RETRIED
from wms.ids import TaskQueueId
from wms.runtime.long_queue_parsing import LongQueueParsing

log = structlog.get_logger()

CATCH_UP_SECONDS = 0.5
"""Seconds of parsing after which the jobs of the queues added so far are read from the database."""


class QueueParsing:
    """Parses the new task queues that an `IndexSync` has deferred, and adds them to its index."""

    name = "queue-learning"

    def __init__(self, feed: IndexSync, long_queues: LongQueueParsing) -> None:
        self._feed = feed
        self._long_queues = long_queues

    async def run(self) -> None:
        """Parse and add the deferred task queues, until cancelled."""
        while True:
            await self._long_queues.wait()
            await self.learn(CATCH_UP_SECONDS)

    async def learn(self, seconds: float) -> None:
        """Parse deferred task queues for up to `seconds` and add them to the index, then read their jobs from the database.

        Queues that are left wait for the next call. The time to read jobs is not limited by `seconds`. Jobs that cannot be read now are left to reconciliation.
        """
        until = time.monotonic() + seconds
        added: list[TaskQueueId] = []
        while self._long_queues and time.monotonic() < until:
            found = await self._long_queues.prepare_next()
            if found is not None and self._feed.add_or_leave_out(found.tq_id, found.requirements):
                added.append(found.tq_id)
        try:
            if added:
                await self._feed.catch_up(added)
        except (*GONE, *RETRIED) as error:
            log.warning("jobs of new queues not read yet", queues=len(added), error=repr(error))
