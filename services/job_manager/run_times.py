"""Learns from ended attempts how long the jobs of each task queue take a slot, and stores it for the matchers."""

from collections.abc import Iterable
from math import inf

from wms.bounded_cache import BoundedCache
from wms.db import run_time
from wms.db.attempt import AttemptEnd
from wms.db.database import Transaction
from wms.ids import TaskQueueId
from wms.job.job import Job
from wms.matching.run_time import RunTime, after

_REMEMBERED = 100_000


class RunTimeLearning:
    """The run times that this process knows. They are written only when they change noticeably, so that many short jobs cost nothing."""

    def __init__(self) -> None:
        self._known = BoundedCache[TaskQueueId, RunTime](_REMEMBERED)
        self._told = BoundedCache[TaskQueueId, RunTime](_REMEMBERED)

    async def learn(self, tx: Transaction, ended: Iterable[tuple[Job, AttemptEnd]]) -> None:
        """Count the slot seconds of attempts that end in this transaction.

        One without success counts only if it took longer than is likely. Else long jobs that fail at their end would pass for short
        ones, of which a pilot is given many at a time.
        """
        ends: dict[TaskQueueId, list[AttemptEnd]] = {}
        for job, end in ended:
            if end.slot_seconds > 0:
                ends.setdefault(job.tq_id, []).append(end)
        if unknown := ends.keys() - self._known.keys():
            stored = await run_time.read(tx, unknown)
            for tq_id, each in stored.items():
                self._known[tq_id] = self._told[tq_id] = each
        took = {tq_id: self._telling(tq_id, found) for tq_id, found in ends.items()}
        news: dict[TaskQueueId, RunTime] = {}
        for tq_id, seconds in took.items():
            now = after(self._known.get(tq_id), seconds)
            if now is None:
                continue
            self._known[tq_id] = now
            if now.is_news_to(self._told.get(tq_id)):
                news[tq_id] = self._told[tq_id] = now
        await run_time.write(tx, news)
        if news:
            tx.on_failure(lambda: self._forget(news))

    def _telling(self, tq_id: TaskQueueId, ends: Iterable[AttemptEnd]) -> list[float]:
        known = self._known.get(tq_id)
        likely = inf if known is None else known.likely
        return [each.slot_seconds for each in ends if each.outcome == "done" or each.slot_seconds > likely]

    def _forget(self, tq_ids: Iterable[TaskQueueId]) -> None:
        for tq_id in tq_ids:
            self._known.pop(tq_id, None)
            self._told.pop(tq_id, None)
