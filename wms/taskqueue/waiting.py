"""The waiting jobs of one user priority in one task queue: a random one of the ten oldest, in O(log n) and little memory.

`_front` holds the smallest ids in order, `_heap` the others; every id in the heap is larger than every one in the front.
An id discarded from inside the heap stays there, named in `_gone`, until it comes up; should it return meanwhile, it is
merely struck off `_gone`, so that no id is ever held twice.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from wms.ids import JobId

OLDEST = 10
_REFILL = 24
_SPILL = 48


class Waiting:
    """Ids of jobs that wait, each once; whoever calls knows which are here (see `QueueIndex`)."""

    __slots__ = ("_front", "_gone", "_heap", "count", "newest", "number", "queue", "user_priority", "weight")

    def __init__(self, *, number: int, queue: int, user_priority: float, weight: float) -> None:
        self.number = number
        self.queue = queue
        self.user_priority = user_priority
        self.weight = weight
        self.count = 0
        self.newest = JobId(0)
        """No id that is here is larger."""
        self._front: list[JobId] = []
        self._heap: list[JobId] = []
        self._gone: set[JobId] | None = None

    def __iter__(self) -> Iterator[JobId]:
        gone = self._gone or ()
        yield from self._front
        yield from (job for job in self._heap if job not in gone)

    @property
    def oldest(self) -> JobId:
        """The smallest id. There must be one."""
        return self._front[0]

    def fill(self, ascending: list[JobId]) -> None:
        """Put in ids in ascending order, none of them here yet: cheap when nothing is here at all."""
        if self._front:
            for job in ascending:
                self.add(job)
            return
        self._front = ascending[:_REFILL]
        self._heap = ascending[_REFILL:]  # a sorted list is a heap
        self.count = len(ascending)
        self.newest = max((self.newest, *ascending[-1:]))

    def add(self, job: JobId) -> None:
        """Put in an id that is not here."""
        self.count += 1
        self.newest = max(self.newest, job)
        if self._gone and job in self._gone:
            self._gone.remove(job)
        elif self._front and job > self._front[-1] and (self._heap or len(self._front) >= _REFILL):
            heappush(self._heap, job)
        else:
            insort(self._front, job)
            self._spill()

    def discard(self, job: JobId) -> None:
        """Take out an id that is here."""
        self.count -= 1
        if job <= self._front[-1]:
            del self._front[bisect_left(self._front, job)]
            self._refill()
            return
        if self._gone is None:
            self._gone = set()
        self._gone.add(job)
        if len(self._gone) > 16 + len(self._heap) // 2:
            self._sweep()

    def take(self, rng: np.random.Generator) -> JobId:
        """Take out a random one of the ten smallest ids. There must be one."""
        self.count -= 1
        front = self._front
        job = front.pop(int(rng.random() * min(OLDEST, len(front))))
        if len(front) < OLDEST and self._heap:
            self._refill()
        return job

    def _refill(self) -> None:
        front, heap, gone = self._front, self._heap, self._gone
        if len(front) >= OLDEST:
            return
        while heap and len(front) < _REFILL:
            job = heappop(heap)
            if gone and job in gone:
                gone.remove(job)
            else:
                front.append(job)

    def _spill(self) -> None:
        if len(self._front) > _SPILL:
            for job in self._front[_REFILL:]:
                heappush(self._heap, job)
            del self._front[_REFILL:]

    def _sweep(self) -> None:
        gone = self._gone or set()
        self._heap = sorted(job for job in self._heap if job not in gone)
        self._gone = None
