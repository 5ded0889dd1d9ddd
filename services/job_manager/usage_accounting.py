"""Charges owners with the usage of their jobs, in the transaction that ends the attempts. Nothing where usage has no weight."""

from collections.abc import Iterable

from wms.db import task_queue, usage
from wms.db.attempt import AttemptEnd
from wms.db.database import Transaction
from wms.ids import TaskQueueId
from wms.job.job import Job
from wms.matching.grouping import processors_needed
from wms.matching.usage import Owner

HOUR = 3_600.0
_REMEMBERED = 100_000


class UsageAccounting:
    """Adds up wall time by processors; nothing is done where the half-life is 0."""

    def __init__(self, half_life_hours: float) -> None:
        self._half_life_seconds = half_life_hours * HOUR
        self._processors: dict[TaskQueueId, int] = {}

    async def charge(self, tx: Transaction, ended: Iterable[tuple[Job, AttemptEnd]]) -> None:
        """Charge the owners of jobs whose attempts end in this transaction."""
        if not self._half_life_seconds:
            return
        used = [(job, end.usage.wall_seconds) for job, end in ended if end.usage is not None]
        await self._learn(tx, {job.tq_id for job, _ in used})
        sums: dict[Owner, float] = {}
        for job, seconds in used:
            owner = (job.vo, job.owner_group, job.owner)
            sums[owner] = sums.get(owner, 0.0) + seconds * self._processors[job.tq_id]
        await usage.charge(tx, sums, self._half_life_seconds)

    async def _learn(self, tx: Transaction, tq_ids: set[TaskQueueId]) -> None:
        """Know how many processors the jobs of these queues take: it never changes."""
        if len(self._processors) > _REMEMBERED:
            self._processors.clear()
        if unknown := tq_ids - self._processors.keys():
            required = await task_queue.read(tx, unknown)
            self._processors.update({tq_id: processors_needed(each) for tq_id, each in required.items()})
