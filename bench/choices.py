"""Choices of a site that predict nothing: by chance, by the shortest queue, and by an oracle that knows the truth.

*Shortest queue* is what clients of grids do. It orders by waiting jobs over slots, and sites without waiting jobs by their free slots;
sites that publish no load are left out. That is ARC's broker `FastestQueue` (`FastestQueueBrokerPlugin.cpp` of nordugrid/arc), except
that ARC prefers fewer free slots among sites without a queue, which is worse here. gLite's users did the same by the rank
`-other.GlueCEStateWaitingJobs`. It sees what the broker sees: loads as old as the last ad, and as wrong as the site tells them.
*Own jobs counted* adds the jobs that it has placed since that ad, as ARC does within one submission of many jobs.

The *oracle* knows what nobody can: each site's true speed, queue and bandwidth, and how long each job runs. It takes the site where
this job ends first, which is the best for this job, though not always for those after it. The *late oracle* knows the same, except that
its knowledge of queues is up to one period of ads old, as the broker's is; it counts its own jobs since.
"""

import random
from collections import Counter
from collections.abc import Callable
from math import inf

from msgspec.structs import replace

from bench.grid import AD_SECONDS, Grid, GridJob
from wms.broker import selectors
from wms.broker.candidate import Candidate

Choice = Callable[[Grid, GridJob], int]
"""A function that returns the number of the site that gets a job."""


def at_random(seed: int) -> Choice:
    rng = random.Random(seed)
    return lambda grid, _: rng.randrange(len(grid.sites))


def shortest_queue(grid: Grid, _: GridJob) -> int:
    return _shortest(grid.told)


def shortest_queue_counting(grid: Grid, _: GridJob) -> int:
    return _shortest([loaded(told, since) for told, since in zip(grid.told, grid.placed_since, strict=True)])


def knowing_all(grid: Grid, job: GridJob) -> int:
    return min(range(len(grid.sites)), key=lambda number: grid.true_end(job, number))


class LateOracle:
    """A choice by the true speeds of sites and run times of jobs, and by true queues of up to `AD_SECONDS` ago."""

    def __init__(self) -> None:
        self._looked_at = -inf
        self._starts: list[float] = []
        self._placed_since: Counter[int] = Counter()

    def __call__(self, grid: Grid, job: GridJob) -> int:
        numbers = range(len(grid.sites))
        if grid.agenda.now - self._looked_at >= AD_SECONDS:
            self._looked_at = grid.agenda.now
            self._starts = [grid.true_start(number) for number in numbers]
            self._placed_since.clear()
        best = min(numbers, key=lambda number: self._end(grid, job, number))
        self._placed_since[best] += 1
        return best

    def _end(self, grid: Grid, job: GridJob, number: int) -> float:
        site = grid.sites[number]
        held = job.held_at(site)
        start = self._starts[number] + self._placed_since[number] * held / site.slots
        return max(start, grid.agenda.now) + held


def loaded(told: Candidate, jobs: int) -> Candidate:
    """Return a candidate with so many more jobs: they take free slots first, then wait."""
    if told.free_slots is None or told.waiting_jobs is None:
        return told
    taken = min(told.free_slots, jobs)
    return replace(told, free_slots=told.free_slots - taken, waiting_jobs=told.waiting_jobs + jobs - taken)


def _shortest(told: list[Candidate]) -> int:
    return min(range(len(told)), key=lambda number: selectors.queue_length(told[number]))
