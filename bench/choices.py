"""Choices of a site that predict nothing: by chance, by the shortest queue, and by an oracle that knows the truth.

*Shortest queue* is what clients of grids do. It orders by waiting jobs over slots, and sites without waiting jobs by their free slots;
sites that publish no load are left out. That is ARC's broker `FastestQueue` (`FastestQueueBrokerPlugin.cpp` of nordugrid/arc), except
that ARC prefers fewer free slots among sites without a queue, which is worse here. gLite's users did the same by the rank
`-other.GlueCEStateWaitingJobs`. It sees what the broker sees: loads as old as the last ad, and as wrong as the site tells them.
*Own jobs counted* adds the jobs that it has placed since that ad, as ARC does within one submission of many jobs.

The *oracle* knows what nobody can: each site's true speed, queue and bandwidth, and how long each job runs. It takes the site where
this job ends first, which is the best for this job, though not always for those after it.
"""

import random
from collections.abc import Callable

from msgspec.structs import replace

from bench.grid import Grid, GridJob
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


def loaded(told: Candidate, jobs: int) -> Candidate:
    """Return a candidate with so many more jobs: they take free slots first, then wait."""
    if told.free_slots is None or told.waiting_jobs is None:
        return told
    taken = min(told.free_slots, jobs)
    return replace(told, free_slots=told.free_slots - taken, waiting_jobs=told.waiting_jobs + jobs - taken)


def _shortest(told: list[Candidate]) -> int:
    return min(range(len(told)), key=lambda number: selectors.queue_length(told[number]))
