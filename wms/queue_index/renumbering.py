"""The tables of an index by slot (row number of a queue), and new ones without the slots of removed queues, filled in small parts.

The present tables stay in use meanwhile. Each queue that comes or goes moves some others to the new tables, as in a hash table that grows
bit by bit (Redis). What changes by itself, the numbers of jobs, is copied at the end as arrays. Then the former tables are freed in parts,
too.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np

from wms.ids import TaskQueueId
from wms.matching.draw_law import Law
from wms.matching.grouping import Requirements
from wms.matching.shares import GroupShare, VoGroup
from wms.queue_index.effort import Effort
from wms.queue_index.fit_cache import FitCache
from wms.queue_index.growable_array import GrowableArray
from wms.queue_index.queue_pools import Pools
from wms.queue_index.significant_attributes import SignificantAttributes
from wms.queue_index.waiting_jobs import WaitingJobs
from wms.queue_index.weights import Weights

MOVED: Final = 4
"""The most queues that one step moves: 0.1 ms."""
LOOKED_AT: Final = 64
"""The most slots that one step looks at."""
FREED: Final = 256
"""The most entries of former tables that one step frees."""

Container: TypeAlias = "list[Any] | dict[Any, Any]"


class IndexedQueue:
    """A task queue of the index: its requirements, and its waiting jobs by user priority."""

    __slots__ = ("count", "levels", "only", "priorities", "requirements", "tq_id")

    def __init__(self, tq_id: TaskQueueId, requirements: Requirements) -> None:
        self.tq_id = tq_id
        self.requirements = requirements
        self.levels: dict[float, WaitingJobs] = {}
        self.only: WaitingJobs | None = None
        """The queue's user-priority level, if it has exactly one; else None."""
        self.count = 0
        self.priorities = 0.0
        """The sum of `real_priority` over the queue's jobs."""


class SlotTables:
    """All queues by slot, with their weights, the pools to draw from, and which resources they fit. Slots are given out in order."""

    def __init__(
        self,
        group_shares: Mapping[VoGroup, GroupShare],
        law: Law,
        ad_classes: SignificantAttributes,
        cached_resources: int,
        effort: Effort,
    ) -> None:
        self.queues: list[IndexedQueue | None] = []
        self.slot_of: dict[TaskQueueId, int] = {}
        self.weighing = Weights(group_shares)
        self.pools = Pools(self.weighing, law)
        self.ad_classes = ad_classes
        self.fitting = FitCache(self.pools, ad_classes, cached=cached_resources, effort=effort)

    def place(self, queue: IndexedQueue) -> None:
        """Give a queue the next slot, and add it to all tables."""
        self.slot_of[queue.tq_id] = len(self.queues)
        self.queues.append(queue)
        self.weighing.append(queue.requirements)
        self.pools.append(queue.requirements)
        self.fitting.append(queue.requirements)

    def vacate(self, tq_id: TaskQueueId) -> None:
        """Remove a queue. Its slot is not used again."""
        slot = self.slot_of.pop(tq_id)
        self.queues[slot] = None
        self.weighing.vacate(slot)

    def containers(self) -> Iterator[Container]:
        """Yield what has entries for many queues, also for removed ones, and takes long to free."""
        return chain(self.fitting.containers(), self.weighing.containers(), (self.pools.requirements,))


class Renumbering:
    """Moves the queues of `former` tables to `tables`, which are empty at first."""

    def __init__(self, former: SlotTables, tables: SlotTables) -> None:
        self.tables = tables
        self._former = former
        self._looked_at = 0
        self._slots = GrowableArray(np.int32)
        """By new slot, the former one."""

    def vacate(self, tq_id: TaskQueueId) -> None:
        """Remove a queue that the former tables no longer have, if it was moved already."""
        if tq_id in self.tables.slot_of:
            self.tables.vacate(tq_id)

    def go_on(self) -> bool:
        """Move a few queues. Return whether the new tables are complete now, with all numbers of jobs."""
        queues = self._former.queues
        most = len(self.tables.queues) + MOVED
        end = min(self._looked_at + LOOKED_AT, len(queues))
        while self._looked_at < end and len(self.tables.queues) < most:
            queue = queues[self._looked_at]
            if queue is not None:
                self.tables.place(queue)
                self._slots.append(self._looked_at)
            self._looked_at += 1
        if self._looked_at < len(queues):
            return False
        self.tables.weighing.follow(self._former.weighing, self._slots.values)
        return True


class Leftovers:
    """What former tables hold, which is freed in small parts: at once it would take 1 us for each removed queue."""

    def __init__(self, containers: Iterable[Container] = ()) -> None:
        self._containers = list(containers)

    def free(self) -> None:
        """Free a few entries."""
        left = FREED
        while self._containers and left:
            container = self._containers[-1]
            if not container:
                self._containers.pop()
            elif isinstance(container, list):
                freed = min(left, len(container))
                del container[-freed:]
                left -= freed
            else:
                container.popitem()
                left -= 1
