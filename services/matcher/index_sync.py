"""Keeps a matcher's queue index equal to the waiting jobs in Postgres: loads them at the start, then applies messages on changes.

The subscription to changes begins before the load, so that a job that begins to wait meanwhile is in one or both. Lost changes
are found by reconciliation, which compares the number of waiting jobs in each queue. Changes without a service's signature are
ignored.

New queues are added one by one, and repairs are made in small parts. Other work of the event loop is done in between.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np
import structlog
from numpy.typing import NDArray

from wms.auth.service_signatures import ServiceSignatures
from wms.bus.inbox import Inbox
from wms.bus.kafka import Kafka
from wms.bus.signed import SignedCodec
from wms.bus.topics import SHARED
from wms.db import block, job, task_queue
from wms.db.database import Database
from wms.ids import JobId, TaskQueueId, beyond, joined
from wms.matching.grouping import Requirements
from wms.matching.limits import LimitKey
from wms.messages.queue_changes import TOPIC, Change, Entered, JobsEntered, Left, Opened, RulesChanged
from wms.queue_index.index import QueueIndex

log = structlog.get_logger()

PART: Final = 1_000
"""The most jobs that a reconciliation repairs at a time: 10 ms."""
QUEUES: Final = 500
"""The most queues that a reconciliation compares at a time."""

Ints = NDArray[np.int64]


class IndexSync:
    """Keeps one matcher's queue index equal to the waiting jobs in the database."""

    name = "queue-feed"

    def __init__(
        self,
        db: Database,
        kafka: Kafka,
        index: QueueIndex,
        notices: ServiceSignatures,
    ) -> None:
        """Take the database, the Kafka client and the empty index. `notices` verifies the signatures of services."""
        self._db = db
        self._index = index
        topic = next(each for each in SHARED if each.name == TOPIC)
        self.on_rules_changed: Callable[[], Awaitable[None]] = _nothing
        """A function that is called when shares, limits or avoided elements have changed in the database.

        Jobs that begin to wait after the change enter the index when it has returned.
        """
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
        """Apply changes to the index as they arrive, until cancelled. A change that fails is logged and left to reconciliation.

        Raise the errors of Kafka. The next call subscribes anew, and repairs what changed in between.
        """
        try:
            if not self.inbox.is_open:
                await self.inbox.start()
                await self.reconcile()
            while True:
                for change in await self.inbox.poll(1.0):
                    await self._apply_or_pass_over(change)
        finally:
            await self.inbox.close()

    async def _apply_or_pass_over(self, change: Change) -> None:
        try:
            await self._apply(change)
            # To add a queue takes milliseconds if its requirements are long.
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
                await self.on_rules_changed()

    def _enter(self, change: Entered) -> None:
        self._index.add_queue(change.tq_id, change.requirements)
        self._index.add(change.tq_id, change.user_priority, change.job_ids)
        for first, last in change.ranges:
            self._index.add_range(change.tq_id, change.user_priority, JobId(first), JobId(last))
        self.on_entered()

    async def _learn(self, tq_ids: Collection[TaskQueueId]) -> None:
        """Read the requirements of queues that the index lacks, and add the queues. Raise the errors of the database."""
        unknown = {tq_id for tq_id in tq_ids if tq_id not in self._index}
        if not unknown:
            return
        async with self._db.transaction() as tx:
            required = await task_queue.read(tx, unknown)
        await self._know(required)

    async def _know(self, required: Mapping[TaskQueueId, Requirements]) -> None:
        """Add queues with these requirements one by one, and let other tasks run in between."""
        for tq_id, requirements in required.items():
            self._add_or_leave_out(tq_id, requirements)
            await asyncio.sleep(0)

    def _add_or_leave_out(self, tq_id: TaskQueueId, requirements: Requirements) -> None:
        """Add a queue to the index. One that cannot be added is logged and left out."""
        try:
            self._index.add_queue(tq_id, requirements)
        except Exception:
            log.exception("a queue is left out", tq_id=tq_id)

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
        async with self._db.transaction() as tx:
            counts = await job.count_waiting(tx)
        known = before.keys() | counts.keys()
        differing = [tq_id for tq_id in known if before.get(tq_id, 0) != counts.get(tq_id, 0)]
        for start in range(0, len(differing), QUEUES):
            await self._reconcile(differing[start : start + QUEUES])
        for tq_id in before:
            if tq_id not in counts and tq_id in self._index and not self._index.count(tq_id):
                self._index.remove_queue(tq_id)
                await asyncio.sleep(0)

    async def _reconcile(self, tq_ids: Sequence[TaskQueueId]) -> None:
        """Repair these queues, of which there are at most `QUEUES`."""
        await self._learn(tq_ids)
        known = [tq_id for tq_id in tq_ids if tq_id in self._index]
        # Only jobs that were here before the reading can be found missing by it.
        singles = [self._index.singles(tq_id) for tq_id in known]
        ranges = joined(each for tq_id in known for each in self._index.blocks(tq_id))
        async with self._db.transaction() as tx:
            waiting = await job.waiting_in(tx, known)
            swept = await block.waiting(tx, known)
        rows = np.concatenate([np.array(ids, np.int64) for _, _, ids in waiting] or [np.empty(0, np.int64)])
        there = joined(each for _, _, each in swept)
        changed = await self._repair_blocks(swept, beyond(ranges, there), np.sort(rows))
        stale = await asyncio.to_thread(np.setdiff1d, np.concatenate([np.empty(0, np.int64), *singles]), rows)
        changed += await self._repair(_outside(stale, there))
        for tq_id, priority, ids in waiting:
            if tq_id in self._index:
                changed += await self._repair(self._index.missing(tq_id, priority, ids))
                await asyncio.sleep(0)
        if changed:
            self.on_entered()
            log.info("index reconciled", changed=changed)

    async def _repair_blocks(
        self,
        swept: Iterable[tuple[TaskQueueId, float, tuple[int, int]]],
        stale: Iterable[tuple[int, int]],
        rows: Ints,
    ) -> int:
        """Add the blocks that wait, and remove the ids of stale ones without a row. Return how many jobs came or went."""
        changed = 0
        for first, last in stale:
            kept = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last, "right")].tolist()
            for gap in beyond([(first, last)], joined((each, each) for each in kept)):
                changed += self._index.discard_range(JobId(gap[0]), JobId(gap[1]))
                await asyncio.sleep(0)
        for tq_id, priority, (first, last) in swept:
            if tq_id in self._index:
                changed += self._index.add_range(tq_id, priority, JobId(first), JobId(last))
                await asyncio.sleep(0)
        return changed

    async def _repair(self, job_ids: list[JobId]) -> int:
        """Have the index say of jobs what the database says now, a part at a time. Return how many came or went.

        The index and the database change in between, so that each part is read anew just before it is applied.
        """
        changed = 0
        for start in range(0, len(job_ids), PART):
            part = job_ids[start : start + PART]
            async with self._db.transaction() as tx:
                waiting = await job.waiting_among(tx, part)
            there = {job_id for _, _, ids in waiting for job_id in ids}
            changed += self._index.discard(*(each for each in part if each not in there))
            changed += sum(self._index.add(*each) for each in waiting if each[0] in self._index)
        return changed


def _outside(ascending: Ints, ranges: Sequence[tuple[int, int]]) -> list[JobId]:
    """Return those of the ids, in ascending order, that are in none of the ranges."""
    firsts = np.array([first for first, _ in ranges], np.int64)
    lasts = np.array([-1, *(last for _, last in ranges)], np.int64)
    outside: list[JobId] = ascending[ascending > lasts[np.searchsorted(firsts, ascending, "right")]].tolist()
    return outside


async def _nothing() -> None:
    """Do nothing: the default of what is called for changes."""
