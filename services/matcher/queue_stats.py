"""Writes statistics of task queues from the matcher's memory to the database, so that nobody else must count jobs."""

import time
from collections import Counter

from wms.db import queue_stats
from wms.db.database import Database
from wms.db.queue_stats import QueueState
from wms.ids import TaskQueueId
from wms.matching.draw_law import Law
from wms.matching.queue_stats import Level
from wms.queue_index.index import QueueIndex

SHARE_OF_TIME = 50
"""The pause after a round, as a multiple of the CPU time that the round took. Wall time would be longer on a busy machine."""
LONGEST_REST_SECONDS = 3.0
"""The longest pause between two rounds, in seconds. After a longer one another matcher would take over the writing, or pilots would wait too long."""
WEIGHT_STEP = 0.02
"""The fraction by which a queue's weight in the draw must change to be written again."""


class QueueStatsWriter:
    """Writes how many jobs this matcher has matched. Unless another matcher does it, it also writes the waiting jobs and the weight of each queue."""

    def __init__(
        self, db: Database, index: QueueIndex, matched: Counter[TaskQueueId], law: Law, name: str
    ) -> None:
        self._db = db
        self._index = index
        self._matched = matched
        self._law = law
        self._name = name
        self._not_before = 0.0
        self._written: dict[TaskQueueId, tuple[int, float]] | None = None

    async def look(self) -> None:
        """Write what has changed since the last round, unless the pause after the last round still lasts."""
        began = time.monotonic()
        if began >= self._not_before:
            before = time.process_time()
            await self.write()
            took = time.process_time() - before
            self._not_before = began + min(SHARE_OF_TIME * took, LONGEST_REST_SECONDS)

    async def write(self) -> None:
        """Write what has changed since the last round, in a transaction of its own."""
        matched = self._matched.copy()
        now = {
            tq_id: (self._index.count(tq_id), self._index.weight(tq_id)) for tq_id in self._index.queue_ids()
        }
        changed = [tq_id for tq_id, said in now.items() if self._is_news(tq_id, *said)]
        states = [self._state(tq_id, *now[tq_id]) for tq_id in changed]
        async with self._db.transaction() as tx:
            await queue_stats.serve(tx, matched)
            watching = await queue_stats.watch(tx, self._name, self._law)
            if watching:
                if self._written is None:
                    await queue_stats.keep_only(tx, sorted(now))
                    states = [self._state(tq_id, *said) for tq_id, said in now.items()]
                else:
                    await queue_stats.forget(tx, sorted(self._written.keys() - now.keys()))
                await queue_stats.write(tx, states)
        self._matched.subtract(matched)
        for tq_id in [each for each, count in self._matched.items() if not count]:
            del self._matched[tq_id]
        self._remember(now, changed, watching=watching)

    def _is_news(self, tq_id: TaskQueueId, waiting: int, weight: float) -> bool:
        if self._written is None or tq_id not in self._written:
            return True
        was, weighed = self._written[tq_id]
        return was != waiting or abs(weight - weighed) > WEIGHT_STEP * weighed

    def _remember(
        self, now: dict[TaskQueueId, tuple[int, float]], changed: list[TaskQueueId], *, watching: bool
    ) -> None:
        if not watching:
            self._written = None
        elif self._written is None:
            self._written = now
        else:
            for tq_id in self._written.keys() - now.keys():
                del self._written[tq_id]
            self._written.update((tq_id, now[tq_id]) for tq_id in changed)

    def _state(self, tq_id: TaskQueueId, waiting: int, weight: float) -> QueueState:
        levels = tuple(
            Level(user_priority=priority, count=count, oldest=oldest, newest=newest)
            for priority, count, oldest, newest in self._index.levels(tq_id)
        )
        return QueueState(tq_id=tq_id, waiting=waiting, weight=weight, levels=levels)
