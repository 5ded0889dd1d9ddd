"""Keeps a matcher's queue index equal to the waiting jobs in Postgres: loads them at the start, then applies messages on changes.

The subscription to changes begins before the load, so that a job that begins to wait meanwhile is in one or both. Lost changes
are found by reconciliation, which compares the number of waiting jobs in each queue. Changes without a service's signature are
ignored.

A new queue whose requirements take long to parse is parsed first, outside of the event loop (`services.matcher.queue_parsing`).
Until it is in the index, changes of its jobs are ignored; then they are read from the database.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain

import structlog

from wms.auth.service_signatures import ServiceSignatures
from wms.bus.inbox import Inbox
from wms.bus.kafka import Kafka
from wms.bus.signed import SignedCodec
from wms.bus.topics import SHARED
from wms.db import block, job, task_queue
from wms.db.database import GONE, RETRIED, Database
from wms.ids import JobId, TaskQueueId, beyond, joined
from wms.matching.grouping import Requirements
from wms.matching.limits import LimitKey
from wms.messages.queue_changes import TOPIC, Change, Entered, JobsEntered, Left, Opened, RulesChanged
from wms.queue_index.index import QueueIndex
from wms.runtime.long_queue_parsing import LongQueueParsing

log = structlog.get_logger()


class IndexSync:
    """Keeps one matcher's queue index equal to the waiting jobs in the database."""

    name = "queue-feed"

    def __init__(
        self,
        db: Database,
        kafka: Kafka,
        index: QueueIndex,
        notices: ServiceSignatures,
        long_queues: LongQueueParsing | None = None,
    ) -> None:
        """Take the database, the Kafka client and the empty index. `notices` verifies the signatures of services.

        `long_queues` parses new queues with long requirements before they are added. If it is None, all queues are added at once.
        """
        self._db = db
        self._index = index
        self._long_queues = long_queues
        topic = next(each for each in SHARED if each.name == TOPIC)
        self.on_rules_changed: Callable[[], None] = lambda: None
        """A function that is called when shares or limits have changed in the database."""
        self.on_entered: Callable[[], None] = lambda: None
        """A function that is called when jobs have begun to wait."""
        self.on_opened: Callable[[Iterable[LimitKey]], None] = lambda _: None
        """A function that is called with the keys of limits that allow jobs again. A key is, for example, an owner at a site."""
        self.inbox: Inbox[Change] = Inbox(kafka, topic, SignedCodec(Change, TOPIC, notices))

    async def load(self) -> None:
        """Subscribe to changes, then load all waiting jobs into the index."""
        await self.inbox.start()
        await self.fill()
        log.info("index loaded", jobs=len(self._index))

    async def run(self) -> None:
        """Apply changes to the index as they arrive, until cancelled. A change that fails is logged and left to reconciliation."""
        try:
            while True:
                for change in await self.inbox.poll(1.0):
                    await self._apply_or_pass_over(change)
        finally:
            await self.inbox.close()

    async def _apply_or_pass_over(self, change: Change) -> None:
        try:
            await self._apply(change)
            # Adding a queue takes milliseconds if its requirements are parsed here.
            await asyncio.sleep(0)
        except Exception:
            # The reconciliation repairs what the change should have done.
            log.exception("a change is passed over", change=type(change).__name__)

    async def _apply(self, change: Change) -> None:
        match change:
            case JobsEntered():
                await self._learn({tq_id for tq_id, _, _ in change.levels})
                for tq_id, priority, job_ids in change.levels:
                    if tq_id in self._index:
                        self._index.add(tq_id, priority, job_ids)
                self.on_entered()
            case Entered():
                self._enter(change)
            case Left():
                self._index.discard(*change.job_ids)
                for first, last in change.ranges:
                    self._index.discard_range(JobId(first), JobId(last))
            case Opened():
                self.on_opened(LimitKey(*key) for key in change.keys)
            case RulesChanged():
                self.on_rules_changed()

    def _enter(self, change: Entered) -> None:
        if self._is_put_off(change.tq_id, change.requirements):
            return
        self._index.add_queue(change.tq_id, change.requirements)
        self._index.add(change.tq_id, change.user_priority, change.job_ids)
        for first, last in change.ranges:
            self._index.add_range(change.tq_id, change.user_priority, JobId(first), JobId(last))
        self.on_entered()

    async def _learn(self, tq_ids: Collection[TaskQueueId]) -> None:
        """Read the requirements of queues that the index lacks, and add the queues. Those that cannot be read now are left to reconciliation."""
        unknown = {tq_id for tq_id in tq_ids if tq_id not in self._index} - self._put_off
        if not unknown:
            return
        try:
            async with self._db.transaction() as tx:
                required = await task_queue.read(tx, unknown)
        except (*GONE, *RETRIED) as error:
            log.warning("queues not learnt yet", queues=len(unknown), error=repr(error))
            return
        await self._know(required)

    async def _know(self, required: Mapping[TaskQueueId, Requirements]) -> None:
        """Add queues with these requirements one by one, and let other tasks run in between."""
        for tq_id, requirements in required.items():
            if not self._is_put_off(tq_id, requirements):
                self.add_or_leave_out(tq_id, requirements)
            await asyncio.sleep(0)

    def add_or_leave_out(self, tq_id: TaskQueueId, requirements: Requirements) -> bool:
        """Add a queue to the index; return False if it cannot be added, which is logged."""
        try:
            self._index.add_queue(tq_id, requirements)
        except Exception:
            log.exception("a queue is left out", tq_id=tq_id)
            return False
        return True

    def _is_put_off(self, tq_id: TaskQueueId, requirements: Requirements) -> bool:
        """Defer a new queue whose requirements take long to parse. Return whether it was deferred."""
        if self._long_queues is None or tq_id in self._index:
            return False
        return self._long_queues.put_if_long(tq_id, requirements)

    @property
    def _put_off(self) -> set[TaskQueueId]:
        return self._long_queues.queue_ids() if self._long_queues is not None else set()

    async def catch_up(self, tq_ids: Sequence[TaskQueueId]) -> None:
        """Read the waiting jobs of queues that were parsed in the background and are now in the index."""
        await self._reconcile(list(tq_ids))

    async def fill(self) -> None:
        """Load all waiting jobs of the database into the index, which must be empty."""
        async with self._db.transaction() as tx:
            waiting = await job.waiting(tx)
            swept = await block.waiting(tx)
            required = await task_queue.read(tx, (tq_id for tq_id, *_ in chain(waiting, swept)))
        await self._know(required)
        waiting = [each for each in waiting if each[0] in self._index]
        swept = [each for each in swept if each[0] in self._index]
        self._index.load(
            [tq_id for tq_id, _, ids in waiting for _ in ids],
            [priority for _, priority, ids in waiting for _ in ids],
            [job_id for _, _, ids in waiting for job_id in ids],
        )
        for tq_id, priority, (first, last) in swept:
            self._index.add_range(tq_id, priority, JobId(first), JobId(last))

    async def reconcile(self) -> None:
        """Compare the index with the database, queue by queue, and repair it: add missing jobs, and remove those that no longer wait.

        Only queues whose number of waiting jobs differs are read. Queues that are gone are removed.
        """
        before = {tq_id: self._index.count(tq_id) for tq_id in self._index.queue_ids()}
        put_off = self._put_off
        async with self._db.transaction() as tx:
            counts = await job.count_waiting(tx)
        if self._long_queues is not None:
            self._long_queues.drop(put_off - counts.keys())
        known = (before.keys() | counts.keys()) - put_off
        differing = [tq_id for tq_id in known if before.get(tq_id, 0) != counts.get(tq_id, 0)]
        if differing:
            await self._reconcile(differing)
        for tq_id in [each for each in before if each not in counts and not self._index.count(each)]:
            self._index.remove_queue(tq_id)

    async def _reconcile(self, tq_ids: list[TaskQueueId]) -> None:
        # This comes first as it takes long: no change may come between reading and applying.
        await self._learn(tq_ids)
        # Only jobs that were here before the reading can be found missing by it.
        known = [tq_id for tq_id in tq_ids if tq_id in self._index]
        singles = {job_id for tq_id in known for job_id in self._index.singles(tq_id)}
        ranges = [each for tq_id in known for each in self._index.blocks(tq_id)]
        async with self._db.transaction() as tx:
            waiting = await job.waiting_in(tx, tq_ids)
            swept = await block.waiting(tx, tq_ids)
        # A queue that is newer is added by its own change, or by the next reconciliation.
        waiting = [each for each in waiting if each[0] in self._index]
        swept = [each for each in swept if each[0] in self._index]
        rows = {job_id for _, _, ids in waiting for job_id in ids}
        there = joined(each for _, _, each in swept)
        gone = list(beyond(((job_id, job_id) for job_id in sorted(singles - rows)), there))
        if stale := list(beyond(joined(ranges), there)):
            within = range(stale[0][0], stale[-1][1] + 1)
            gone += beyond(stale, joined((job_id, job_id) for job_id in rows if job_id in within))
        removed = sum(self._index.discard_range(JobId(first), JobId(last)) for first, last in gone)
        added = sum(self._index.add(tq_id, priority, ids) for tq_id, priority, ids in waiting)
        added += sum(
            self._index.add_range(tq_id, priority, JobId(first), JobId(last))
            for tq_id, priority, (first, last) in swept
        )
        if added:
            self.on_entered()
        if added or removed:
            log.info("index reconciled", added=added, removed=removed)
