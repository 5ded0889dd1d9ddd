"""The waiting jobs of one user priority in one task queue: gives a random one of the ten oldest, in O(log n).

A `SortedIds` keeps ids in order. `_front` holds the smallest ids. `_rest` holds the ids added in ascending order, eight bytes
each, used from `_at` on. `_late` is a heap of the ids added out of order. All ids in `_rest` and `_late` are larger than those in
the front. An id that is discarded from there stays in its place and is listed in `_gone` until it comes up. If it is added again
before that, it is only removed from `_gone`. So no id is ever held twice.

A `WaitingJobs` has two such sets of ids: one for this matcher's share of the jobs, one for the shares of other matchers. Own ids
are given first, but at most `leeway` of them while an older id of another share waits. Then the oldest of both are given.

Blocks of consecutive ids that nobody has asked for yet are kept by their two ends (`IdRange`). A few ids at a time move from a
block into the sets of ids when they are among the oldest.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from wms.ids import JobId, TaskQueueId

OLDEST = 10
_REFILL = 24
_SPILL = 48
_RUN_BITS = 4
UNROLLED = 1 << _RUN_BITS
"""The most ids that move from a block to single ids at a time. All of them are of one matcher's share."""


class MatcherShare:
    """The share of all job ids that one of `parts` matchers prefers, by hash; shares are numbered from 0.

    All ids in a run of 16 have the same share, so that matchers seldom touch the same pages of the database. Making one
    raises ValueError unless 0 <= part < parts.
    """

    __slots__ = ("part", "parts")

    def __init__(self, part: int = 0, parts: int = 1) -> None:
        if not 0 <= part < parts:
            raise ValueError(f"there is no part {part} of {parts}: the parts of n are 0 to n - 1")
        self.part = part
        self.parts = parts

    def owns(self, job: JobId) -> bool:
        """Return whether a job, by its id, is in the share of this matcher."""
        if self.parts == 1:
            return True
        return ((job >> _RUN_BITS) * 0x9E3779B1 & 0xFFFFFFFF) * self.parts >> 32 == self.part

    def owned(self, jobs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each job id in an array whether it is in the share of this matcher."""
        runs = (jobs >> _RUN_BITS).astype(np.uint64) * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)
        owned: NDArray[np.bool_] = runs * np.uint64(self.parts) >> np.uint64(32) == self.part
        return owned


class IdRange:
    """A block of waiting jobs of one level with consecutive ids, from `first` to `last`; `level` is the level's number."""

    __slots__ = ("first", "last", "level")

    def __init__(self, first: int, last: int, level: int) -> None:
        self.first = first
        self.last = last
        self.level = level


class SortedIds:
    """A set of job ids whose ten smallest are always at hand in a sorted list."""

    __slots__ = ("_at", "_gone", "_late", "_rest", "front")

    def __init__(self) -> None:
        self.front: list[JobId] = []
        """The smallest ids in order: at least ten, if there are ten."""
        self._rest = array("q")
        self._at = 0
        self._late: list[JobId] = []
        self._gone: set[JobId] | None = None

    def ids(self) -> NDArray[np.int64]:
        """Return all ids in the set, in no order."""
        front, rest, late = (np.array(ids, dtype=np.int64) for ids in (self.front, self._rest, self._late))
        behind = np.concatenate([rest[self._at :], late])
        if self._gone:
            behind = behind[np.isin(behind, list(self._gone), invert=True)]
        return np.concatenate([front, behind])

    @property
    def newest(self) -> JobId:
        """The largest id. It may be too large if the largest was removed. The set must not be empty."""
        behind = self._rest[-1] if self._at < len(self._rest) else 0
        return JobId(max(self.front[-1], behind, max(self._late, default=0)))

    def fill(self, ascending: NDArray[np.int64]) -> None:
        """Add ids in ascending order, none of which may be in the set; fast if the set is empty."""
        if self.front:
            for job in ascending.tolist():
                self.add(job)
            return
        self.front = ascending[:_REFILL].tolist()
        self._rest = array("q", ascending[_REFILL:].tobytes())
        self._at = 0

    def add(self, job: JobId) -> None:
        """Add an id that is not in the set."""
        front = self.front
        if self._gone and job in self._gone:
            self._gone.remove(job)
        elif not front or job < front[-1]:
            insort(front, job)
            self._spill()
        elif self._at == len(self._rest) and not self._late and len(front) < _REFILL:
            front.append(job)
        elif self._at == len(self._rest) or job > self._rest[-1]:
            self._rest.append(job)
        else:
            heappush(self._late, job)

    def discard(self, job: JobId) -> None:
        """Remove an id that is in the set."""
        if job <= self.front[-1]:
            del self.front[bisect_left(self.front, job)]
            if len(self.front) < OLDEST:
                self.refill()
            return
        if self._gone is None:
            self._gone = set()
        self._gone.add(job)
        if len(self._gone) > 16 + (len(self._rest) - self._at + len(self._late)) // 2:
            self._sweep()

    def refill(self) -> None:
        """Move the next smallest ids into `front`, after ids were taken from there."""
        front, late = self.front, self._late
        if not late and self._at == len(self._rest):
            return
        if not late and not self._gone:
            start = self._at
            self._at = min(start + _REFILL - len(front), len(self._rest))
            front.extend(map(JobId, self._rest[start : self._at]))
        else:
            while len(front) < _REFILL and (late or self._at < len(self._rest)):
                job = self._next()
                if self._gone and job in self._gone:
                    self._gone.remove(job)
                else:
                    front.append(job)
        if self._at > 4096 and self._at * 2 > len(self._rest):
            del self._rest[: self._at]
            self._at = 0

    def _next(self) -> JobId:
        if self._late and (self._at == len(self._rest) or self._late[0] < self._rest[self._at]):
            return heappop(self._late)
        self._at += 1
        return JobId(self._rest[self._at - 1])

    def _spill(self) -> None:
        if len(self.front) > _SPILL:
            for job in self.front[_REFILL:]:
                heappush(self._late, job)
            del self.front[_REFILL:]

    def _sweep(self) -> None:
        behind = np.sort(self.ids()[len(self.front) :])
        self._rest, self._at, self._late, self._gone = array("q", behind.tobytes()), 0, [], None


class WaitingJobs:
    """The waiting jobs of one user priority in one queue (a level). The caller keeps track of which ids are in it.

    `number` is the number of the level, `tq_id` the id of its queue, and `weight` the weight of each job in the draw. `part` is the
    share of ids that this matcher prefers; None: all.
    """

    __slots__ = (
        "_other",
        "_overtaking",
        "_own",
        "_part",
        "blocks",
        "count",
        "number",
        "tq_id",
        "user_priority",
        "weight",
    )

    def __init__(
        self,
        *,
        number: int,
        tq_id: TaskQueueId,
        user_priority: float,
        weight: float,
        part: MatcherShare | None = None,
    ) -> None:
        self.number = number
        self.tq_id = tq_id
        self.user_priority = user_priority
        self.weight = weight
        self.count = 0
        self.blocks: list[IdRange] = []
        """Jobs that are stored as blocks of consecutive ids, in ascending order."""
        self._part = part or MatcherShare()
        self._own = SortedIds()
        self._other = SortedIds() if self._part.parts > 1 else self._own
        self._overtaking: list[JobId] = []
        """In order, the ids of this matcher's share that were given out although an older id of another share waits."""

    def __iter__(self) -> Iterator[JobId]:
        yield from map(JobId, self.singles().tolist())
        for block in self.blocks:
            yield from map(JobId, range(block.first, block.last + 1))

    @property
    def oldest(self) -> JobId:
        """The smallest job id. There must be a job."""
        ids = [line.front[0] for line in (self._own, self._other) if line.front]
        return min(ids + [JobId(block.first) for block in self.blocks[:1]])

    @property
    def newest(self) -> JobId:
        """The largest job id. It may be too large if the largest was removed. There must be a job."""
        ids = [line.newest for line in (self._own, self._other) if line.front]
        return max(ids + [JobId(block.last) for block in self.blocks[-1:]])

    def singles(self) -> NDArray[np.int64]:
        """Return the ids of the jobs that are stored one by one, not in blocks, in no order."""
        own = self._own.ids()
        return own if self._other is self._own else np.concatenate([own, self._other.ids()])

    def fill(self, ascending: NDArray[np.int64]) -> None:
        """Add ids in ascending order, none of which may be there yet; fast if there are none so far."""
        self.count += len(ascending)
        if self._other is self._own:
            self._own.fill(ascending)
            return
        owned = self._part.owned(ascending)
        self._own.fill(ascending[owned])
        self._other.fill(ascending[~owned])

    def divide(self, part: MatcherShare) -> None:
        """Set which share of the job ids this matcher prefers from now on."""
        singles = self.singles()
        self._part = part
        self._own = SortedIds()
        self._other = SortedIds() if part.parts > 1 else self._own
        self._overtaking.clear()
        self.count -= len(singles)
        singles.sort()
        self.fill(singles)

    def add(self, job: JobId) -> None:
        """Add the id of a job that is not there yet."""
        self.count += 1
        self._line(job).add(job)

    def discard(self, job: JobId) -> None:
        """Remove the id of a job that is there, and in no block."""
        self.count -= 1
        self._line(job).discard(job)

    def take(
        self, uniform: float, unroll: Callable[["WaitingJobs"], Iterable[JobId]], leeway: int = 0
    ) -> JobId:
        """Remove and return a random one of the ten smallest ids of the preferred share, or of all shares. There must be a job.

        `uniform` is a random number in [0, 1). `unroll` removes the next ids from the first block and returns them. While an
        older id of another share waits, at most `leeway` younger ids of the preferred share are given.
        """
        own = self._own
        while self.blocks and (len(own.front) < OLDEST or self.blocks[0].first < own.front[OLDEST - 1]):
            for job in unroll(self):
                self._line(job).add(job)
        self.count -= 1
        others = self._other.front
        if others is own.front or not others:
            return _take_oldest(own, uniform)
        if not own.front:
            return _take_oldest(self._other, uniform)
        if not self._may_overtake(others[0], leeway):
            return self._take_oldest_of_all(uniform)
        job = _take_oldest(own, uniform)
        if job > others[0]:
            insort(self._overtaking, job)
        return job

    def _may_overtake(self, oldest: JobId, leeway: int) -> bool:
        """Return whether one more own id may be given before `oldest`, the oldest id of the other shares."""
        overtaking = self._overtaking
        if overtaking and overtaking[0] < oldest:
            del overtaking[: bisect_left(overtaking, oldest)]
        return len(overtaking) < leeway

    def _take_oldest_of_all(self, uniform: float) -> JobId:
        oldest = sorted(self._own.front[:OLDEST] + self._other.front[:OLDEST])[:OLDEST]
        job = oldest[int(uniform * len(oldest))]
        self._line(job).discard(job)
        return job

    def _line(self, job: JobId) -> SortedIds:
        return self._own if self._other is self._own or self._part.owns(job) else self._other


def _take_oldest(line: SortedIds, uniform: float) -> JobId:
    there = len(line.front)
    if there > OLDEST:
        return line.front.pop(int(uniform * OLDEST))
    job = line.front.pop(int(uniform * there))
    line.refill()
    return job
