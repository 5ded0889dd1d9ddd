"""Records the processor time of jobs as usage of their owners, in the transaction that ends the attempts."""

from collections.abc import Iterable

from wms.bounded_cache import BoundedCache
from wms.db import task_queue, usage
from wms.db.attempt import AttemptEnd
from wms.db.database import Transaction
from wms.ids import Identity, TaskQueueId
from wms.job.job import Job
from wms.matching.grouping import processors_needed

HOUR = 3_600.0
_REMEMBERED = 100_000


class UsageAccounting:
    """Adds to each owner's usage the wall time of ended attempts, times their processors. With a half-life of 0 hours it does nothing."""

    def __init__(self, half_life_hours: float) -> None:
        self._half_life_seconds = half_life_hours * HOUR
        self._processors = BoundedCache[TaskQueueId, int](_REMEMBERED)

    async def charge(self, tx: Transaction, ended: Iterable[tuple[Job, AttemptEnd]]) -> None:
        """Add the usage of these ended attempts to their jobs' owners, in this transaction."""
        if not self._half_life_seconds:
            return
        used = [(job, end.usage.wall_seconds) for job, end in ended if end.usage is not None]
        processors = await self._processors_of(tx, {job.tq_id for job, _ in used})
        sums: dict[Identity, float] = {}
        for job, seconds in used:
            owner = Identity(job.owner, job.owner_group, job.vo)
            sums[owner] = sums.get(owner, 0.0) + seconds * processors[job.tq_id]
        await usage.charge(tx, sums, self._half_life_seconds)

    async def _processors_of(self, tx: Transaction, tq_ids: set[TaskQueueId]) -> dict[TaskQueueId, int]:
        """Return how many processors a job of each queue takes. The number never changes for a queue."""
        found = {tq_id: self._processors[tq_id] for tq_id in tq_ids & self._processors.keys()}
        if unknown := tq_ids - found.keys():
            for tq_id, required in (await task_queue.read(tx, unknown)).items():
                found[tq_id] = self._processors[tq_id] = processors_needed(required)
        return found
