"""The waiting jobs of all task queues in memory, and the choice of the next one for a resource.

The index is a copy that the database corrects: it is loaded from there, follows the changes, and what it picks is yet to be
claimed there. Of the fitting queues that have jobs, those of the highest CPU segment are drawn from by RAND()/weight; in
the queue a user priority is drawn by RAND()/priority over its jobs; of the ten oldest jobs of that priority one at random.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wms.ids import JobId, TaskQueueId
from wms.site import Resource
from wms.taskqueue import draw, shares
from wms.taskqueue.closed import Closed, Mask, Pair
from wms.taskqueue.draw import Law
from wms.taskqueue.fitting import Fitting, NoMatch, Slots, View
from wms.taskqueue.grouping import Requirements
from wms.taskqueue.selection import refusal
from wms.taskqueue.shares import GroupShare, VoGroup
from wms.taskqueue.waiting import Waiting
from wms.taskqueue.weighing import Table, Weighing

_FEW_SLOTS = 1024


class UnknownQueueError(LookupError):
    """A task queue that was never added, or is removed."""


class Pick(NamedTuple):
    """A job chosen, taken out of the index."""

    job_id: JobId
    tq_id: TaskQueueId
    user_priority: float


class _Queue:
    __slots__ = ("count", "levels", "requirements", "slot", "tq_id")

    def __init__(self, tq_id: TaskQueueId, requirements: Requirements) -> None:
        self.tq_id = tq_id
        self.requirements = requirements
        self.slot = -1
        self.levels: dict[float, Waiting] = {}
        self.count = 0


class QueueIndex:
    """Task queues and their waiting jobs; not safe for threads.

    `groups` gives the shares of groups of VOs (absent: the default share), `law` the order of the draw, `cached_resources`
    how many distinct resource descriptions are remembered.
    """

    def __init__(
        self,
        *,
        groups: Mapping[VoGroup, GroupShare] | None = None,
        law: Law = "dirac",
        cached_resources: int = 512,
    ) -> None:
        self._shares = dict(groups or {})
        self._law = law
        self._cached = cached_resources
        self._level_of: dict[JobId, int] = {}
        self._levels: list[Waiting | None] = []
        self._free_levels: list[int] = []
        self._slot_of: dict[TaskQueueId, int] = {}
        self._closed = Closed()
        self._reset_slots()

    def _reset_slots(self) -> None:
        self._queues: list[_Queue | None] = []
        self._fitting = Fitting(cached=self._cached)
        self._weighing = Weighing(self._shares)
        self._closed.reset()

    # --- what is here -----------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of waiting jobs."""
        return len(self._level_of)

    def __contains__(self, tq_id: object) -> bool:
        return tq_id in self._slot_of

    def queue_ids(self) -> Iterator[TaskQueueId]:
        """Go over the queues, empty ones included."""
        return iter(self._slot_of)

    def count(self, tq_id: TaskQueueId) -> int:
        """Return the number of jobs that wait in a queue."""
        return self._queue(tq_id).count

    def jobs(self, tq_id: TaskQueueId) -> Iterator[tuple[JobId, float]]:
        """Go over the jobs of a queue with their user priorities, in no order."""
        for level in self._queue(tq_id).levels.values():
            yield from zip(level, repeat(level.user_priority))

    def levels(self, tq_id: TaskQueueId) -> list[tuple[float, int, JobId, JobId]]:
        """Return of each user priority with waiting jobs how many wait and two ids between which theirs lie."""
        return [
            (level.user_priority, level.count, level.oldest, level.newest)
            for level in self._queue(tq_id).levels.values()
            if level.count
        ]

    def requirements(self, tq_id: TaskQueueId) -> Requirements:
        """Return what the jobs of a queue ask for."""
        return self._queue(tq_id).requirements

    def weight(self, tq_id: TaskQueueId) -> float:
        """Return the weight of a queue, 0.0 when it is empty; before it is scaled to what a resource sees."""
        return self._weighing.weight(self._queue(tq_id).slot)

    # --- queues come and go -----------------------------------------------------------------------

    def add_queue(self, tq_id: TaskQueueId, requirements: Requirements) -> None:
        """Add an empty queue; a known one with equal requirements is left as it is.

        Raises ValueError when the queue is known with other requirements.
        """
        if tq_id not in self._slot_of:
            self._place(_Queue(tq_id, requirements))
        elif self._queue(tq_id).requirements != requirements:
            raise ValueError(f"task queue {tq_id} cannot change its requirements")

    def remove_queue(self, tq_id: TaskQueueId) -> int:
        """Forget a queue and whatever still waits in it; return how many jobs that were. Unknown: nothing, 0."""
        if tq_id not in self._slot_of:
            return 0
        queue = self._queue(tq_id)
        dropped = queue.count
        for level in queue.levels.values():
            for job in level:
                del self._level_of[job]
            self._levels[level.number] = None
            self._free_levels.append(level.number)
        self._weighing.vacate(queue.slot)
        self._queues[queue.slot] = None
        del self._slot_of[tq_id]
        if len(self._queues) > _FEW_SLOTS and len(self._slot_of) < len(self._queues) // 2:
            self._close_gaps()
        return dropped

    def set_shares(self, groups: Mapping[VoGroup, GroupShare]) -> None:
        """Give all groups these shares, from the next draw on; one that is not named has the default."""
        changed = [
            name for name in groups.keys() | self._shares if groups.get(name) != self._shares.get(name)
        ]
        self._shares.clear()
        self._shares.update(groups)
        for name in changed:
            self._weighing.reshare(name)

    def close(self, site: str, pairs: Iterable[Pair], *, ce: str = "") -> None:
        """Say all that is closed at a site, or on one of its computing elements, from the next draw on.

        A queue that has any of the pairs gives no job there until they open: ("owner", "alice"), ("tag", "GPU"), or
        ("any", "") for all. Each call replaces what was said of the place before; no pairs open it. The draw among the
        other queues is exactly that in which the closed ones are not there. Raises ValueError for an unknown attribute.
        """
        self._closed.close(site, ce, pairs)

    def closed(self, site: str, ce: str = "") -> frozenset[Pair]:
        """Return what is closed for a resource there, by its site and by its computing element."""
        return self._closed.at(site, ce)

    def _queue(self, tq_id: TaskQueueId) -> _Queue:
        try:
            queue = self._queues[self._slot_of[tq_id]]
        except KeyError:
            raise UnknownQueueError(f"task queue {tq_id}") from None
        assert queue is not None
        return queue

    def _place(self, queue: _Queue) -> None:
        """Put a queue into the next slot."""
        queue.slot = len(self._queues)
        self._queues.append(queue)
        self._slot_of[queue.tq_id] = queue.slot
        self._fitting.append(queue.requirements)
        self._weighing.append(queue.requirements)
        self._closed.append(queue.requirements)

    def _close_gaps(self) -> None:
        """Number the slots anew, so that queues long gone cost nothing."""
        queues = [queue for queue in self._queues if queue is not None]
        self._reset_slots()
        for queue in queues:
            self._place(queue)
            for level in queue.levels.values():
                level.queue = queue.slot
            self._recount(queue)

    # --- jobs come and go -------------------------------------------------------------------------

    def add(self, tq_id: TaskQueueId, user_priority: float, job_ids: Iterable[JobId]) -> int:
        """Add waiting jobs; return how many of them were not there already. A job known elsewhere is moved."""
        queue = self._queue(tq_id)
        level = self._level(queue, user_priority)
        level_of, number = self._level_of, level.number
        before = len(level_of)
        for job in job_ids:
            known = level_of.get(job)
            if known == number:
                continue
            if known is not None:
                self.discard(job)
            level_of[job] = number
            level.add(job)
            queue.count += 1
        self._recount(queue)
        return len(level_of) - before

    def discard(self, *job_ids: JobId) -> int:
        """Take out jobs that wait no more; return how many of them were there."""
        touched: dict[int, _Queue] = {}
        found = 0
        for job in job_ids:
            number = self._level_of.pop(job, None)
            if number is None:
                continue
            level = self._levels[number]
            assert level is not None
            queue = self._queues[level.queue]
            assert queue is not None
            level.discard(job)
            queue.count -= 1
            touched[queue.slot] = queue
            found += 1
        for queue in touched.values():
            self._recount(queue)
        return found

    def restore(self, picks: Iterable[Pick]) -> None:
        """Put back jobs that were picked but not claimed; those whose queue is gone are passed over."""
        for pick in picks:
            if pick.tq_id in self._slot_of:
                self.add(pick.tq_id, pick.user_priority, (pick.job_id,))

    def load(self, tq_ids: ArrayLike, user_priorities: ArrayLike, job_ids: ArrayLike) -> int:
        """Add many jobs at once from three arrays of one length; return how many were new.

        All queues must be known. Much faster than `add` for jobs that are not here yet.
        """
        jobs = np.asarray(job_ids, dtype=np.int64)
        queues = np.asarray(tq_ids, dtype=np.int64)
        priorities = np.asarray(user_priorities, dtype=np.float64)
        order = np.lexsort((jobs, priorities, queues))
        jobs, queues, priorities = jobs[order], queues[order], priorities[order]
        changes = (queues[1:] != queues[:-1]) | (priorities[1:] != priorities[:-1])
        bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(jobs)]
        fresh = not self._level_of and _distinct(jobs)
        before = len(self._level_of)
        ids: list[JobId] = jobs.tolist()
        for start, end in pairwise(bounds):
            if start < end:
                tq_id, priority = TaskQueueId(int(queues[start])), float(priorities[start])
                self._add_run(tq_id, priority, ids[start:end], fresh=fresh)
        if fresh:
            self._level_of = _compact(self._level_of)
        return len(self._level_of) - before

    def _add_run(
        self, tq_id: TaskQueueId, user_priority: float, ascending: list[JobId], *, fresh: bool
    ) -> None:
        if not fresh:
            self.add(tq_id, user_priority, ascending)
            return
        queue = self._queue(tq_id)
        level = self._level(queue, user_priority)
        self._level_of.update(zip(ascending, repeat(level.number)))
        level.fill(ascending)
        queue.count += len(ascending)
        self._recount(queue)

    def _level(self, queue: _Queue, user_priority: float) -> Waiting:
        level = queue.levels.get(user_priority)
        if level is None:
            number = self._free_levels.pop() if self._free_levels else len(self._levels)
            level = Waiting(
                number=number,
                queue=queue.slot,
                user_priority=user_priority,
                weight=shares.real_priority(user_priority),
            )
            queue.levels[user_priority] = level
            self._levels[number : number + 1] = [level]
        return level

    def _recount(self, queue: _Queue) -> None:
        """Note what a queue holds now, by which it is weighed."""
        levels = queue.levels.values()
        mean = sum(level.count * level.weight for level in levels) / (queue.count or 1)
        self._weighing.note(queue.slot, queue.count, mean)

    # --- the choice -------------------------------------------------------------------------------

    def select(self, resource: Resource, count: int, rng: np.random.Generator) -> list[Pick]:
        """Choose up to `count` jobs for a resource by successive draws and take them out.

        Fewer, or none, when no more fit; `why_nothing` tells why. A resource whose description is refused gets none.
        """
        if refusal(resource):
            return []
        view = self._fitting.view(resource)
        closed = self._closed.slots(resource.site, resource.grid_ce)
        picks: list[Pick] = []
        while len(picks) < count:
            queue = self._draw_queue(view, closed, resource.cpu_time, rng)
            if queue is None:
                break
            picks.append(self._take(queue, rng))
        return picks

    def why_nothing(self, resource: Resource) -> NoMatch:
        """Return why `select` finds nothing for a resource, by the same clauses."""
        refused = refusal(resource)
        if refused:
            return NoMatch(refusal=refused.detail)
        jobs = self._weighing.jobs.values
        closed = self._closed.slots(resource.site, resource.grid_ce)
        failed = self._fitting.failures(resource, jobs, closed, self._closed.detail)
        waiting = int(np.count_nonzero(jobs))
        return NoMatch(
            waiting_queues=waiting,
            waiting_jobs=len(self._level_of),
            fitting_queues=waiting - sum(count.queues for count in failed),
            failed=tuple(sorted(failed, key=lambda count: -count.jobs)),
        )

    def _draw_queue(
        self, view: View, closed: Mask | None, cpu_time: int, rng: np.random.Generator
    ) -> _Queue | None:
        self._weighing.refresh()
        for segment in view.segments:
            if segment > cpu_time:
                continue
            if closed is not None:
                slot = self._draw_open(view.by_segment[segment], closed, rng)
            else:
                table = view.tables.get(segment)
                if table is None or table.version != self._weighing.version:
                    table = view.tables[segment] = self._weighing.table(view.by_segment[segment])
                slot = self._draw_slot(view, segment, table, rng) if len(table.slots) else None
            if slot is not None:
                return self._queues[slot]
        return None

    def _draw_open(self, fitting: Slots, closed: Mask, rng: np.random.Generator) -> int | None:
        """Draw one of the queues that are not kept back."""
        table = self._weighing.table(fitting[~closed[fitting]])
        if not len(table.slots):
            return None
        return table.slots.item((draw.randoms(self._law, len(table.slots), rng) * table.inverse).argmin())

    def _draw_slot(self, view: View, segment: int, table: Table, rng: np.random.Generator) -> int | None:
        """Draw one of the queues of a table.

        Should it have emptied meanwhile, all that did are left out and the same random numbers decide among the others,
        as if these had been alone from the start; drawing again would favour the heavy.
        """
        randoms = draw.randoms(self._law, len(table.slots), rng)
        slot = table.slots.item((randoms * table.inverse).argmin())
        jobs = self._weighing.jobs.values
        if jobs[slot]:
            return slot
        randoms = randoms[jobs[table.slots] > 0]
        table = view.tables[segment] = self._weighing.table(table.slots)
        return table.slots.item((randoms * table.inverse).argmin()) if len(table.slots) else None

    def _take(self, queue: _Queue, rng: np.random.Generator) -> Pick:
        level = self._draw_level(queue, rng)
        job = level.take(rng)
        del self._level_of[job]
        queue.count -= 1
        self._recount(queue)
        return Pick(job, queue.tq_id, level.user_priority)

    def _draw_level(self, queue: _Queue, rng: np.random.Generator) -> Waiting:
        levels = [level for level in queue.levels.values() if level.count]
        if len(levels) == 1:
            return levels[0]
        return min(
            levels, key=lambda level: draw.smallest(self._law, rng.random(), level.count, level.weight)
        )


def _distinct(jobs: NDArray[np.int64]) -> bool:
    in_order = np.sort(jobs)
    return not (in_order[1:] == in_order[:-1]).any()


def _compact(levels: dict[JobId, int]) -> dict[JobId, int]:
    """Return the dictionary in half the memory: one that grew by steps has up to twice the room it needs."""
    compact: dict[JobId, int] = {}
    compact.update(levels)
    return compact
