"""A simulated grid of heterogeneous sites, event by event: queues, true speeds, and what each site says of itself, which may be wrong.

A site starts jobs in the order in which they came, one a slot. A job holds its slot while its files come and go. The broker's jobs and
those of local users wait in one queue. What a site says of its load is as old as its last ad, and some sites err by habit.
"""

import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heapreplace
from typing import Any

from wms.broker.candidate import Candidate
from wms.broker.job_to_place import JobToPlace
from wms.broker.time_to_delivery import DeliveryTime
from wms.simulation.agenda import Agenda
from wms.site import ComputingElement

AD_SECONDS = 300.0
"""The period of ads."""
UNIT = 1_000.0
"""The benchmarks' results on a machine of speed 1."""


@dataclass(frozen=True)
class GridSite:
    """What is true of a site, and how it errs when it tells of itself."""

    name: str
    slots: int
    speed: float
    bandwidth: float
    """Bytes a second of a transfer."""
    benchmarks: dict[str, float] = field(default_factory=dict)
    load_factor: float | None = 1.0
    """What it says of its load is this times the truth; None: it says nothing."""


@dataclass(eq=False)
class GridJob:
    """A job: its work in seconds on a machine of speed 1, and its files. With a `home` it is a local user's there."""

    submitted: float
    work: float
    home: int | None = None
    to_place: JobToPlace | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    slowness: float = 1.0
    """A factor on its transfers: the network's mood."""
    site: int = -1
    started: float = 0.0
    ended: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)
    predicted: DeliveryTime | None = None

    @property
    def delivery(self) -> float:
        """Seconds from submission to the end."""
        return self.ended - self.submitted

    def parts_at(self, site: GridSite) -> dict[str, float]:
        """Return the true seconds of its transfers and its run at a site."""
        return {
            "stage_in": self.bytes_in * self.slowness / site.bandwidth,
            "execution": self.work / site.speed,
            "stage_out": self.bytes_out * self.slowness / site.bandwidth,
        }

    def held_at(self, site: GridSite) -> float:
        """Return how long it holds a slot at a site."""
        return sum(self.parts_at(site).values())


class Grid:
    """Sites with their queues. `started` and `ended` are called with every job of the broker's that has started or ended."""

    def __init__(
        self,
        sites: Sequence[GridSite],
        ended: Callable[[GridJob], None],
        started: Callable[[GridJob], None] = lambda _: None,
    ) -> None:
        self.agenda = Agenda()
        self.sites = sites
        self._ended, self._started = ended, started
        self.queues: list[deque[GridJob]] = [deque() for _ in sites]
        self._running: list[list[GridJob]] = [[] for _ in sites]
        self.told = [_told(site, 0, 0) for site in sites]
        """The sites as their last ads tell of them."""
        self.placed_since = [0] * len(sites)
        """The broker's jobs that came since the last ad."""

    def run(self, jobs: Sequence[GridJob], place: Callable[[GridJob], int]) -> None:
        """Run jobs in the order of their submission; `place` says where one goes that has no home. Ends when all of these ended."""
        self._left = sum(job.home is None for job in jobs)
        for job in jobs:
            self.agenda.after(job.submitted, lambda each: self._submit(each, place), job)
        for number in range(len(self.sites)):
            self.agenda.after(AD_SECONDS * number / len(self.sites), self._advertise, number)
        while self._left:
            self.agenda.step()

    def true_end(self, job: GridJob, number: int) -> float:
        """Return when a job would end at a site if it came there now."""
        return self.true_start(number) + job.held_at(self.sites[number])

    def true_start(self, number: int) -> float:
        """Return when a job would start at a site if it came there now: jobs start in order, so that later ones change nothing."""
        site = self.sites[number]
        free = [0.0] * (site.slots - len(self._running[number]))
        frees = [*free, *(each.ended for each in self._running[number])]
        heapify(frees)
        for each in self.queues[number]:
            heapreplace(frees, frees[0] + each.held_at(site))
        return max(frees[0], self.agenda.now)

    def _submit(self, job: GridJob, place: Callable[[GridJob], int]) -> None:
        if job.home is None:
            job.site = place(job)
            self.placed_since[job.site] += 1
        else:
            job.site = job.home
        self.queues[job.site].append(job)
        self._start(job.site)

    def _start(self, number: int) -> None:
        site, queue = self.sites[number], self.queues[number]
        while queue and len(self._running[number]) < site.slots:
            job = queue.popleft()
            self._running[number].append(job)
            job.started = self.agenda.now
            job.parts = {"waiting": job.started - job.submitted, **job.parts_at(site)}
            job.ended = job.started + job.held_at(site)
            if job.home is None:
                self._started(job)
            self.agenda.after(job.ended - job.started, self._end, job)

    def _end(self, job: GridJob) -> None:
        self._running[job.site].remove(job)
        if job.home is None:
            self._left -= 1
            self._ended(job)
        self._start(job.site)

    def _advertise(self, number: int) -> None:
        self.told[number] = _told(self.sites[number], len(self._running[number]), len(self.queues[number]))
        self.placed_since[number] = 0
        self.agenda.after(AD_SECONDS, self._advertise, number)


def _told(site: GridSite, running: int, waiting: int) -> Candidate:
    element = ComputingElement(site=site.name, ce="ce", slots=site.slots, max_cpu_time=10**9)
    made = Candidate(element=element, slots=site.slots, benchmarks=site.benchmarks)
    if site.load_factor is None:
        return made
    free = round((site.slots - running) / site.load_factor)
    told: dict[str, Any] = {
        "running_jobs": running,
        "waiting_jobs": round(waiting * site.load_factor),
        "free_slots": max(0, min(site.slots, free)),
    }
    return Candidate(element=element, slots=site.slots, benchmarks=site.benchmarks, **told)


def make_sites(rng: random.Random, sizes: Sequence[tuple[str, int]]) -> list[GridSite]:
    """Return sites of these names and slots with speeds from 0.4 to 2.5, benchmarks of which some are wrong, and habits."""
    return [_site(rng, name, slots) for name, slots in sizes]


def _site(rng: random.Random, name: str, slots: int) -> GridSite:
    speed = math.exp(rng.uniform(math.log(0.4), math.log(2.5)))
    site = GridSite(name, slots, speed, bandwidth=min(3e8, max(2e6, rng.lognormvariate(17.0, 1.0))))
    wrong = rng.choice((0.6, 1.6)) if rng.random() < 0.2 else 1.0
    results = {
        each: UNIT * speed * wrong * rng.lognormvariate(0.0, 0.1)
        for each in ("specint2000", "specfp2000")
        if rng.random() < 0.85
    }
    load_factor = rng.choice((1.0, 1.0, 1.0, 0.5, 2.0, None))
    return replace(site, benchmarks=results, load_factor=load_factor)


def again(jobs: Sequence[GridJob]) -> list[GridJob]:
    """Return the same jobs as they were submitted, for another run."""
    return [replace(job, site=-1, parts={}, predicted=None) for job in jobs]
