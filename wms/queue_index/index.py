"""The waiting jobs of all task queues in memory, and the draw of the next job for a resource.

The index is a copy that the database corrects. It is loaded from the database and follows its changes, and a picked job must
still be claimed there. The draw considers the fitting queues with jobs in the highest CPU segment. It picks one by
RAND()/weight, then a user priority of that queue by RAND()/priority over its jobs. Of the ten oldest jobs of that priority it
takes one at random.

Longer than 400 lines, because each method of this one class keeps the same tables of queues, levels and jobs in step. Fit,
weights, draws and the order of jobs have modules of their own.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, repeat
from math import inf
from operator import attrgetter

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from wms.ids import CeId, JobId, TaskQueueId
from wms.matching import shares
from wms.matching.clauses import refusal
from wms.matching.closed_pairs import Pair
from wms.matching.closures import Closures
from wms.matching.draw_law import Chance, Law, smallest
from wms.matching.grouping import Requirements, without_case
from wms.matching.shares import GroupShare, VoGroup
from wms.queue_index.effort import Effort
from wms.queue_index.fit_cache import FittingQueues, NoFit
from wms.queue_index.job_levels import JobLevels
from wms.queue_index.renumbering import IndexedQueue, Leftovers, Renumbering, SlotTables
from wms.queue_index.significant_attributes import SignificantAttributes
from wms.queue_index.waiting_jobs import UNROLLED, IdRange, MatcherShare, WaitingJobs
from wms.site import Resource

_FEW_SLOTS = 1024
_SLOTS_A_QUEUE = 8
"""The most slots (row numbers) for each queue that is left. With more, all queues get new ones, some at a time."""
_FIRST = attrgetter("first")


class UnknownQueueError(LookupError):
    """The index has no task queue of this id: it was never added, or was removed."""


class Pick(Struct, frozen=True, gc=False):
    """A job that the draw chose and removed from the index, to be claimed in the database or put back by `restore`."""

    job_id: JobId
    tq_id: TaskQueueId
    user_priority: float


def _alike(one: Requirements, other: Requirements) -> bool:
    return one == other or without_case(one) == without_case(other)


class QueueIndex:
    """All task queues and their waiting jobs, in memory; not thread-safe.

    `groups` holds the shares of groups (by VO and group name; absent: the default share) and `law` the law of the draw.
    `cached_resources` is the most distinct resource descriptions that are cached.
    """

    def __init__(
        self,
        *,
        groups: Mapping[VoGroup, GroupShare] | None = None,
        law: Law = "dirac",
        cached_resources: int = 8192,
    ) -> None:
        self._shares = dict(groups or {})
        self._law = law
        self._cached = cached_resources
        self._where = JobLevels()
        self._part = MatcherShare()
        self.leeway = 0
        """The most younger jobs that may be given while an older job waits that another matcher prefers (`set_part`)."""
        self.effort = Effort()
        """What the evaluation of jobs' expressions may take. Queues for which it lacks do not fit yet; later draws judge further."""
        self._chance: Chance | None = None
        self._levels: list[WaitingJobs | None] = [None]
        self._free_levels: list[int] = []
        self._closed = Closures()
        self._renumbering: Renumbering | None = None
        self._leftovers = Leftovers()
        self._use(self._new_tables(SignificantAttributes()))

    def _new_tables(self, ad_classes: SignificantAttributes) -> SlotTables:
        return SlotTables(self._shares, self._law, ad_classes, self._cached, self.effort)

    def _use(self, tables: SlotTables) -> None:
        self._tables = tables
        self._queues = tables.queues
        self._slot_of = tables.slot_of
        self._weighing = tables.weighing
        self._ad_classes = tables.ad_classes
        self._fitting = tables.fitting

    # --- what is here -----------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of waiting jobs."""
        return len(self._where)

    def __contains__(self, tq_id: object) -> bool:
        return tq_id in self._slot_of

    def queue_ids(self) -> Iterator[TaskQueueId]:
        """Return an iterator over the ids of all task queues in the index, also of those without waiting jobs."""
        return iter(self._slot_of)

    def count(self, tq_id: TaskQueueId) -> int:
        """Return how many jobs wait in a task queue. Raise UnknownQueueError if the index does not have the queue."""
        return self._queue(tq_id).count

    def jobs(self, tq_id: TaskQueueId) -> Iterator[tuple[JobId, float]]:
        """Yield the waiting jobs of a queue with their user priorities, in no order.

        Raise UnknownQueueError if the index does not have the queue.
        """
        for level in self._queue(tq_id).levels.values():
            yield from zip(level, repeat(level.user_priority))

    def singles(self, tq_id: TaskQueueId) -> NDArray[np.int64]:
        """Return those waiting jobs of a queue that are stored one by one, not in a block of consecutive ids, in no order."""
        levels = self._queue(tq_id).levels.values()
        return np.concatenate([level.singles() for level in levels] or [np.empty(0, np.int64)])

    def missing(self, tq_id: TaskQueueId, user_priority: float, job_ids: Iterable[JobId]) -> list[JobId]:
        """Return those of the jobs that do not wait here in this queue with this user priority."""
        level = self._queue(tq_id).levels.get(user_priority)
        number = level.number if level else -1
        return [job for job in job_ids if self._level_number(job) != number]

    def blocks(self, tq_id: TaskQueueId) -> Iterator[tuple[int, int]]:
        """Yield the blocks of consecutive ids of waiting jobs in a queue, each as its first and last id."""
        for level in self._queue(tq_id).levels.values():
            yield from ((block.first, block.last) for block in level.blocks)

    def levels(self, tq_id: TaskQueueId) -> list[tuple[float, int, JobId, JobId]]:
        """Return for each user priority of a queue: the priority, the number of jobs, the oldest id, and an upper bound of the ids.

        Priorities without waiting jobs are left out. Raise UnknownQueueError if the index does not have the queue.
        """
        return [
            (level.user_priority, level.count, level.oldest, level.newest)
            for level in self._queue(tq_id).levels.values()
            if level.count
        ]

    @property
    def evaluated(self) -> int:
        """How many evaluations of expressions were made so far for the present queues."""
        return self._fitting.evaluated

    def requirements(self, tq_id: TaskQueueId) -> Requirements:
        """Return what the jobs of a task queue require of a resource; raise UnknownQueueError if there is no such queue."""
        return self._queue(tq_id).requirements

    def weight(self, tq_id: TaskQueueId) -> float:
        """Return the weight of a queue in the draw; 0.0 if it is empty. Raise UnknownQueueError if the index does not have the queue.

        For a resource that fits only part of the queue's share class, the draw uses a larger weight.
        """
        return self._weighing.weight(self._slot(tq_id))

    # --- queues come and go -----------------------------------------------------------------------

    def add_queue(self, tq_id: TaskQueueId, requirements: Requirements) -> None:
        """Add an empty queue; a known one with equal requirements is left as it is.

        Raise ValueError if the queue is known with other requirements.
        """
        if tq_id not in self._slot_of:
            self._place_or_leave(IndexedQueue(tq_id, requirements))
            self._renumber()
        elif not _alike(self._queue(tq_id).requirements, requirements):
            raise ValueError(f"task queue {tq_id} cannot change its requirements")

    def remove_queue(self, tq_id: TaskQueueId) -> int:
        """Remove a queue and its waiting jobs; return the number of these jobs, 0 for an unknown queue."""
        if tq_id not in self._slot_of:
            return 0
        queue = self._queue(tq_id)
        dropped = queue.count
        for level in queue.levels.values():
            for block in level.blocks:
                self._where.drop_block(block)
            level.blocks.clear()
            for job in level:
                self._where.pop(job)
            self._levels[level.number] = None
            self._free_levels.append(level.number)
        self._tables.vacate(tq_id)
        if self._renumbering is not None:
            self._renumbering.vacate(tq_id)
        elif len(self._queues) > _FEW_SLOTS and len(self._slot_of) * _SLOTS_A_QUEUE < len(self._queues):
            self._begin_to_renumber()
        self._renumber()
        return dropped

    def advertise(self, site: str, ce: str, ad: str) -> None:
        """Set the ad of a computing element, as canonical text, from the next draw on; an empty text removes it.

        A job is drawn for a resource there only if the ad's requirements and the job's are both true. Within a CPU segment, the
        queues that the ad's Rank puts highest are drawn from first.
        """
        self._fitting.advertise((site, ce), ad)

    def set_shares(self, groups: Mapping[VoGroup, GroupShare]) -> None:
        """Replace the shares of all groups from the next draw on; a group that is not named has the default share."""
        changed = [
            name for name in groups.keys() | self._shares if groups.get(name) != self._shares.get(name)
        ]
        self._shares.clear()
        self._shares.update(groups)
        for name in changed:
            self._weighing.reshare(name)

    def count_usage(self, factors: Mapping[VoGroup, Mapping[str, float]]) -> None:
        """Set the factors by which past usage changes the shares of owners, by group and owner; for other owners the factor is 1.

        They hold from the next draw on.
        """
        self._weighing.count_usage(factors)

    def waiting_owners(self) -> dict[VoGroup, set[str]]:
        """Return, for each group (VO and group name), the owners that have waiting jobs."""
        return self._weighing.waiting_owners()

    def close(self, site: str, pairs: Iterable[Pair], *, ce: str = "") -> None:
        """Set which jobs limits keep back at a site, or at one of its computing elements (`ce`), from the next draw on.

        Jobs are named by pairs such as ("owner", "alice"), ("tag", "GPU"), or ("any", "") for all. A queue with any of the pairs
        gives no job there. Each call replaces the pairs of that place; without any, it is open. The other queues are drawn
        exactly as if the closed ones did not exist. Raise ValueError for an unknown attribute.
        """
        self._closed.close(site, ce, pairs)

    def avoid(self, places: Mapping[CeId, str]) -> None:
        """Replace the places that get canaries only (small test jobs), each with the reason, from the next draw on.

        A key without computing element is a whole site.
        """
        self._closed.avoid(places)

    def closed(self, site: str, ce: str = "") -> frozenset[Pair]:
        """Return the pairs (attribute and value) whose jobs may not start at a site or, if given, its computing element `ce`."""
        return self._closed.at(site, ce)

    def _slot(self, tq_id: TaskQueueId) -> int:
        try:
            return self._slot_of[tq_id]
        except KeyError:
            raise UnknownQueueError(f"task queue {tq_id}") from None

    def _queue(self, tq_id: TaskQueueId) -> IndexedQueue:
        queue = self._queues[self._slot(tq_id)]
        assert queue is not None
        return queue

    def _place_or_leave(self, queue: IndexedQueue) -> None:
        """Put an empty queue into the next slot. If that fails, remove it from all tables, as some of them have the slot already."""
        try:
            self._tables.place(queue)
            self._closed.append(queue.requirements)
        except BaseException:
            self._queues[self._slot_of.pop(queue.tq_id)] = None
            self._begin_to_renumber()
            while self._renumbering is not None:
                self._renumber()
            raise

    def _begin_to_renumber(self) -> None:
        # What the present tables have parsed is found again as long as they are there.
        self._renumbering = Renumbering(self._tables, self._new_tables(self._ad_classes.anew()))

    def _renumber(self) -> None:
        """Go on to renumber the slots (row numbers), so that removed queues use no memory or time."""
        self._leftovers.free()
        if self._renumbering is not None and self._renumbering.go_on():
            self._leftovers = Leftovers(self._tables.containers())
            self._use(self._renumbering.tables)
            self._closed.renumber(self._tables.pools.requirements)
            self._renumbering = None

    # --- jobs come and go -------------------------------------------------------------------------

    def add(self, tq_id: TaskQueueId, user_priority: float, job_ids: Iterable[JobId]) -> int:
        """Add waiting jobs to a queue; return how many were new. A job that the index has in another queue or priority is moved.

        Raise UnknownQueueError if the index does not have the queue.
        """
        queue = self._queue(tq_id)
        level = self._level(queue, user_priority)
        where, number = self._where, level.number
        before = len(where)
        for job in job_ids:
            known = self._level_number(job)
            if known == number:
                continue
            if known:
                self.discard(job)
            where.put(job, number)
            level.add(job)
            self._count(queue, level, 1)
        self._note(queue)
        return len(where) - before

    def discard(self, *job_ids: JobId) -> int:
        """Remove jobs that no longer wait; return how many of them were in the index."""
        touched: dict[TaskQueueId, IndexedQueue] = {}
        found = 0
        for job in job_ids:
            level = self._levels[self._where.pop(job)]
            if level is not None:
                level.discard(job)
            elif block := self._where.block_of(job):
                level = self._cut(block, job, job)
            else:
                continue
            queue = self._queue_of(level)
            self._count(queue, level, -1)
            touched[queue.tq_id] = queue
            found += 1
        for queue in touched.values():
            self._note(queue)
        return found

    def add_range(self, tq_id: TaskQueueId, user_priority: float, first: JobId, last: JobId) -> int:
        """Add the waiting jobs with ids from `first` to `last`, both included; return how many were new.

        The block takes the memory of one job until some of its jobs are picked; they are picked by age like other jobs. A job that the
        index has in another queue or priority is moved. Raise UnknownQueueError if the index does not have the queue.
        """
        queue = self._queue(tq_id)
        level = self._level(queue, user_priority)
        before = len(self._where)
        here = [job for job, number in self._where.within(first, last) if number == level.number]
        self.discard(
            *(job for job, number in list(self._where.within(first, last)) if number != level.number)
        )
        held = [(job, job) for job in here]
        for block in self._where.blocks_within(first, last):
            if block.level == level.number:
                held.append((JobId(block.first), JobId(block.last)))
            else:
                self.discard_range(JobId(max(first, block.first)), JobId(min(last, block.last)))
        start = first
        for begin, end in [*sorted(held), (JobId(last + 1), last)]:
            if start < begin:
                self._add_block(queue, level, IdRange(start, begin - 1, level.number))
            start = JobId(max(start, end + 1))
        self._note(queue)
        return len(self._where) - before

    def discard_range(self, first: JobId, last: JobId) -> int:
        """Remove all jobs with ids from `first` to `last`, both included; return how many were in the index."""
        before = len(self._where)
        self.discard(*[job for job, _ in self._where.within(first, last)])
        for block in self._where.blocks_within(first, last):
            begin, end = max(first, block.first), min(last, block.last)
            level = self._cut(block, begin, end)
            queue = self._queue_of(level)
            self._count(queue, level, begin - end - 1)
            self._note(queue)
        return before - len(self._where)

    def restore(self, picks: Iterable[Pick]) -> None:
        """Put back jobs that were picked but not claimed; jobs whose queue was removed are ignored."""
        for pick in picks:
            if pick.tq_id in self._slot_of:
                self.add(pick.tq_id, pick.user_priority, (pick.job_id,))

    def load(self, tq_ids: ArrayLike, user_priorities: ArrayLike, job_ids: ArrayLike) -> int:
        """Add many jobs at once from three arrays of equal length; return how many were new.

        All queues must have been added before. In an empty index this is much faster than `add`.
        """
        jobs = np.asarray(job_ids, dtype=np.int64)
        queues = np.asarray(tq_ids, dtype=np.int64)
        priorities = np.asarray(user_priorities, dtype=np.float64)
        order = np.argsort(jobs, kind="stable")
        jobs, queues, priorities = jobs[order], queues[order], priorities[order]
        before = len(self._where)
        if before or (jobs[1:] == jobs[:-1]).any():
            for tq_id, priority, ids in _runs(jobs, queues, priorities):
                self.add(tq_id, priority, ids.tolist())
            return len(self._where) - before
        numbers = np.zeros(len(jobs), dtype=np.int32)
        for tq_id, priority, places in _runs(np.arange(len(jobs)), queues, priorities):
            queue = self._queue(tq_id)
            level = self._level(queue, priority)
            level.fill(jobs[places])
            numbers[places] = level.number
            queue.count += len(places)
            queue.priorities += len(places) * level.weight
        self._where.put_all(jobs, numbers)
        for tq_id in np.unique(queues).tolist():
            self._note(self._queue(tq_id))
        return len(jobs)

    def set_part(self, part: int, parts: int) -> None:
        """Set which part of the jobs this matcher prefers: number `part`, from 0, of `parts` equal parts.

        `set_part(0, 1)` prefers none. So different matchers seldom pick the same job. Within a user priority, the ten oldest jobs of
        the preferred part are given first. But at most `leeway` of them may be younger than a waiting job of another part; then the
        ten oldest of all parts are given. With a leeway of 0 that is always so. Counts, weights and levels cover the jobs of all
        parts.
        """
        if (part, parts) != (self._part.part, self._part.parts):
            self._part = MatcherShare(part, parts)
            for level in self._levels:
                if level is not None:
                    level.divide(self._part)

    # --- how jobs are held ------------------------------------------------------------------------

    def _level_number(self, job: JobId) -> int:
        number = self._where.get(job)
        if not number and (block := self._where.block_of(job)):
            return block.level
        return number

    def _queue_of(self, level: WaitingJobs) -> IndexedQueue:
        return self._queue(level.tq_id)

    def _add_block(self, queue: IndexedQueue, level: WaitingJobs, block: IdRange) -> None:
        self._where.add_block(block)
        insort(level.blocks, block, key=_FIRST)
        level.count += block.last - block.first + 1
        self._count(queue, level, block.last - block.first + 1)

    def _cut(self, block: IdRange, first: int, last: int) -> WaitingJobs:
        """Remove the ids from `first` to `last` from a block, which may leave two blocks.

        Return the user-priority level of these jobs.
        """
        level = self._levels[block.level]
        assert level is not None
        self._where.drop_block(block)
        level.blocks.remove(block)
        level.count -= last - first + 1
        for begin, end in ((block.first, first - 1), (last + 1, block.last)):
            if begin <= end:
                rest = IdRange(begin, end, block.level)
                self._where.add_block(rest)
                insort(level.blocks, rest, key=_FIRST)
        return level

    def _unroll(self, level: WaitingJobs) -> list[JobId]:
        """Take the next ids from the first block of a user-priority level, and store them as single jobs. Return these ids."""
        block = level.blocks[0]
        end = min(block.last + 1, (block.first // UNROLLED + 1) * UNROLLED)
        jobs = [JobId(job) for job in range(block.first, end)]
        if end > block.last:
            self._where.drop_block(block)
            del level.blocks[0]
        else:
            self._where.shorten(block, end)
        for job in jobs:
            self._where.put(job, level.number)
        return jobs

    def _level(self, queue: IndexedQueue, user_priority: float) -> WaitingJobs:
        level = queue.levels.get(user_priority)
        if level is None:
            number = self._free_levels.pop() if self._free_levels else len(self._levels)
            level = WaitingJobs(
                number=number,
                tq_id=queue.tq_id,
                user_priority=user_priority,
                weight=shares.real_priority(user_priority),
                part=self._part,
            )
            queue.levels[user_priority] = level
            queue.only = level if len(queue.levels) == 1 else None
            self._levels[number : number + 1] = [level]
        return level

    @staticmethod
    def _count(queue: IndexedQueue, level: WaitingJobs, jobs: int) -> None:
        queue.count += jobs
        queue.priorities += jobs * level.weight

    def _note(self, queue: IndexedQueue) -> None:
        """Store the queue's number of jobs and mean priority in `Weights`, from which its weight is computed."""
        count, slot = queue.count, self._slot_of[queue.tq_id]
        if not count:
            queue.priorities = 0.0
            self._weighing.note(slot, 0, 0.0)
        else:
            self._weighing.note(slot, count, queue.priorities / count)

    # --- the choice -------------------------------------------------------------------------------

    def select(self, resource: Resource, count: int, rng: np.random.Generator) -> list[Pick]:
        """Draw up to `count` jobs that fit a resource, one after another, and remove them from the index.

        Returns fewer, or none, when no more jobs fit; `why_nothing` returns why. A resource whose description is refused gets
        none. `rng` gives the random numbers.
        """
        view = self._fitting.view(resource)
        if view is None:
            return []
        chance = self._chance_of(rng)
        fit = view.fit
        if self._closed:
            fit = self._closed.left_open(fit, resource.site, resource.grid_ce)
        picks: list[Pick] = []
        while len(picks) < count:
            slot = self._draw_slot(view, fit, resource.cpu_time, chance)
            if slot < 0:
                break
            picks.append(self._take(slot, chance))
        return picks

    def decide(self, resource: Resource) -> bool:
        """Judge which queues fit a resource, as far as the effort lasts. Return whether all are decided; those that are not do not fit yet."""
        view = self._fitting.view(resource)
        return view is None or view.is_whole

    def take(self, tq_id: TaskQueueId, rng: np.random.Generator) -> Pick:
        """Draw a job of one queue, as `select` does once it has drawn the queue, and remove it. The queue must have a job."""
        return self._take(self._slot_of[tq_id], self._chance_of(rng))

    def gives(self, tq_id: TaskQueueId, resource: Resource) -> bool:
        """Return whether `select` could draw a job of this queue for a resource now."""
        slot, view = self._slot_of.get(tq_id, -1), self._fitting.view(resource)
        if slot < 0 or view is None or not self._weighing.jobs.items[slot]:
            return False
        if self.requirements(tq_id).cpu_segment > resource.cpu_time:
            return False
        fit = self._closed.left_open(view.fit, resource.site, resource.grid_ce) if self._closed else view.fit
        return bool(fit[slot >> 3] >> (slot & 7) & 1)

    def _chance_of(self, rng: np.random.Generator) -> Chance:
        if self._chance is None or self._chance.rng is not rng:
            self._chance = Chance(rng)
        return self._chance

    def why_nothing(self, resource: Resource, *, with_examples: bool = True) -> NoFit:
        """Return why `select` finds no job for a resource, by the same clauses.

        `with_examples` adds a failing case to each clause, which takes time and names other users' requirements.
        """
        refused = refusal(resource)
        if refused:
            return NoFit(refusal=refused.detail)
        jobs = self._weighing.jobs.values
        closed = self._closed.slots(resource.site, resource.grid_ce)
        failed = self._fitting.failures(
            resource, jobs, closed, self._closed.detail, with_examples=with_examples
        )
        waiting = int(np.count_nonzero(jobs))
        return NoFit(
            waiting_queues=waiting,
            waiting_jobs=len(self._where),
            fitting_queues=waiting - sum(count.queues for count in failed),
            failed=tuple(sorted(failed, key=lambda count: -count.jobs)),
        )

    def _draw_slot(self, view: FittingQueues, fit: bytes, cpu_time: int, chance: Chance) -> int:
        """Return the slot of the queue that is drawn; -1 when no fitting queue has a job."""
        if self._weighing.dirty:
            self._weighing.refresh()
        for draw in view.draws():
            pool = draw.pool
            if pool.segment > cpu_time or draw.empty == pool.tier.filled:
                continue
            slot = draw.next(fit, chance)
            if slot >= 0:
                return slot
            if fit is view.fit:
                draw.empty = pool.tier.filled
        return -1

    def _take(self, slot: int, chance: Chance) -> Pick:
        queue = self._queues[slot]
        assert queue is not None
        alone = queue.only
        level = alone or self._draw_level(queue.levels.values(), chance)
        job = level.take(chance.uniform(), self._unroll, self.leeway)
        self._where.pop(job)
        queue.count -= 1
        queue.priorities -= level.weight
        if queue.count and alone:
            self._weighing.jobs.items[slot] = queue.count  # and the mean is what it was
        else:
            self._note(queue)
        return Pick(job, queue.tq_id, level.user_priority)

    def _draw_level(self, levels: Iterable[WaitingJobs], chance: Chance) -> WaitingJobs:
        law, uniform = self._law, chance.uniform
        first, drawn = inf, None
        for level in levels:
            if level.count:
                key = smallest(law, uniform(), level.count, level.weight)
                if key < first:
                    first, drawn = key, level
        assert drawn is not None
        return drawn


def _runs(
    values: NDArray[np.int64], queues: NDArray[np.int64], priorities: NDArray[np.float64]
) -> Iterator[tuple[TaskQueueId, float, NDArray[np.int64]]]:
    """Yield the values grouped by queue and priority; within a group they keep the given order."""
    order = np.lexsort((priorities, queues))
    queues, priorities, values = queues[order], priorities[order], values[order]
    changes = (queues[1:] != queues[:-1]) | (priorities[1:] != priorities[:-1])
    bounds: list[int] = [0, *(np.flatnonzero(changes) + 1).tolist(), len(values)]
    for start, end in pairwise(bounds):
        if start == end:
            continue
        yield TaskQueueId(int(queues[start])), float(priorities[start]), values[start:end]
