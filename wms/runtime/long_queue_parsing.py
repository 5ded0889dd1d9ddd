"""Parses new task queues whose requirements take long to parse, one at a time in a thread. Their owners take turns.

The thread shares the interpreter with the event loop. So it pauses after each queue for as long as it worked. All other work has
at least half of the time, however many such queues come.
"""

import asyncio
import math
from collections.abc import Collection

import structlog

from wms.bus.time_slices import PreparationOutcome, PreparationWork, TimeSlices
from wms.fairness import levelled
from wms.ids import TaskQueueId
from wms.matching.conjuncts import SplitRequirements, is_long, preparation
from wms.matching.grouping import Requirements

log = structlog.get_logger()


class ParsedQueue:
    """A task queue whose requirements are parsed. `taken` is the parsed form, or None if it has no requirements.

    The caller keeps `taken` alive until it has added the queue to an index: the parsed form is only cached.
    """

    __slots__ = ("requirements", "taken", "tq_id")

    def __init__(
        self, tq_id: TaskQueueId, requirements: Requirements, taken: SplitRequirements | None
    ) -> None:
        self.tq_id = tq_id
        self.requirements = requirements
        self.taken = taken


class LongQueueParsing:
    """The task queues that wait to be parsed, because their requirements are long.

    The next one is of the owner with the least parsing time since the set was last empty.
    """

    def __init__(self, slices: TimeSlices, *, over_sketches: bool = False) -> None:
        """Start without queues. `slices` is the thread that parses.

        With `over_sketches` queues are parsed to be compared with ads of computing elements, before pilots are sent there.
        """
        self._slices = slices
        self._over_sketches = over_sketches
        self._by_owner: dict[str, dict[TaskQueueId, Requirements]] = {}
        self._in_hand: TaskQueueId | None = None
        self._used: dict[str, float] = {}
        self._came = asyncio.Event()

    def __len__(self) -> int:
        return sum(map(len, self._by_owner.values()))

    def put_if_long(self, tq_id: TaskQueueId, requirements: Requirements) -> bool:
        """Add the task queue if its requirements take long to parse. Return whether they do; else the caller parses them itself."""
        if not is_long(requirements):
            return False
        if tq_id != self._in_hand:
            self._by_owner.setdefault(requirements.owner, {}).setdefault(tq_id, requirements)
            self._came.set()
        return True

    def queue_ids(self) -> set[TaskQueueId]:
        """Return the ids of all task queues that are not parsed yet, including the one that is being parsed."""
        waiting = {tq_id for queues in self._by_owner.values() for tq_id in queues}
        return waiting if self._in_hand is None else waiting | {self._in_hand}

    def drop(self, tq_ids: Collection[TaskQueueId]) -> None:
        """Remove task queues that have no waiting jobs any more, without parsing them. Ids that are not in the set are ignored."""
        for owner, queues in list(self._by_owner.items()):
            for tq_id in queues.keys() & set(tq_ids):
                del queues[tq_id]
            if not queues:
                del self._by_owner[owner]

    async def wait(self) -> None:
        """Return once at least one task queue waits to be parsed."""
        while not self._by_owner:
            self._came.clear()
            await self._came.wait()

    async def prepare_next(self) -> ParsedQueue | None:
        """Parse the next task queue and return it, after a pause as long as the parsing took.

        Return None if none waits. Also return None, after an entry in the log, if the requirements cannot be parsed.
        """
        if not self._by_owner:
            self._used.clear()
            return None
        tq_id, requirements = self._next()
        self._in_hand = tq_id
        try:
            return await self._prepared(tq_id, requirements)
        finally:
            self._in_hand = None

    async def _prepared(self, tq_id: TaskQueueId, requirements: Requirements) -> ParsedQueue | None:
        outcome = PreparationOutcome()
        steps = preparation(requirements, over_sketches=self._over_sketches)
        await self._slices.run([PreparationWork(requirements.owner, steps, outcome)], math.inf)
        self._used[requirements.owner] += outcome.seconds
        await asyncio.sleep(outcome.seconds)
        if outcome.error is not None:
            log.error("a queue is left out", tq_id=tq_id, error=repr(outcome.error))
            return None
        return ParsedQueue(tq_id, requirements, outcome.value)

    def _next(self) -> tuple[TaskQueueId, Requirements]:
        self._used = levelled(self._used, self._by_owner, 0.0)
        owner = min(self._used, key=lambda each: (self._used[each], each))
        queues = self._by_owner[owner]
        tq_id = next(iter(queues))
        found = tq_id, queues.pop(tq_id)
        if not queues:
            del self._by_owner[owner]
        return found
