"""The figures of one simulation: waits, throughput, use of sites, fairness, and jobs that could never run."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wms.matching.grouping import Requirements, processors_needed
from wms.matching.shares import GroupShare
from wms.simulation.fairness import Fairness, Floats, fairness, spent
from wms.simulation.record import NEVER, SimulationRecord
from wms.simulation.scenario import Scenario

Numbers: TypeAlias = NDArray[np.intp]

PERIOD_SECONDS = 3_600.0
PERIODS_LIMIT = 2_000
REASONS_SHOWN = 20


class Waits(Struct, frozen=True, kw_only=True):
    """How long jobs waited, in seconds from arrival to first start: the mean and percentiles. Jobs that never started do not count."""

    mean: float
    p50: float
    p90: float
    p99: float


class OwnerFigures(Struct, frozen=True, kw_only=True):
    """The figures of the jobs of one group or of one owner: counts, waits, core hours used."""

    name: str
    jobs: int
    done: int
    waits: Waits | None
    core_hours: float
    deviation: float | None = None
    """The group's use minus its entitlement, as a fraction of the use of all groups; None for an owner."""


class SiteFigures(Struct, frozen=True, kw_only=True):
    """The figures of one site: its slots, and the attempts of jobs there."""

    name: str
    slots: int
    runs: int
    used: float
    """The fraction of the site's slots that were busy, averaged over the makespan."""


class Never(Struct, frozen=True, kw_only=True):
    """How many jobs of one VO fit no site at any time, and for which reasons."""

    vo: str
    jobs: int
    reasons: tuple[str, ...]


class Figures(Struct, frozen=True, kw_only=True):
    """All figures of one simulation. Times are in seconds of the virtual clock."""

    jobs: int
    done: int
    failed: int
    never: int
    left: int
    """How many jobs fit a site but never ended, because a limit kept them waiting to the end of the simulation."""
    waits: Waits | None
    makespan: float
    """Seconds from the first arrival of a job to the end of the last attempt."""
    jobs_per_hour: float
    """How many jobs were done for each hour of the makespan."""
    used: float
    """The fraction of all slots that were busy, averaged over the makespan."""
    attempts: int
    pilots: int
    jain: float
    deviation: float
    groups: tuple[OwnerFigures, ...]
    owners: tuple[OwnerFigures, ...]
    sites: tuple[SiteFigures, ...]
    never_why: tuple[Never, ...]


def figures(record: SimulationRecord, scenario: Scenario) -> Figures:
    """Compute the figures of a simulation from its record and its scenario."""
    return _Reckoning(record, scenario).figures()


class _Reckoning:
    def __init__(self, record: SimulationRecord, scenario: Scenario) -> None:
        self.record = record
        self.scenario = scenario
        self.came = np.array([job.at for job in record.arrivals])
        self.started = np.array(record.first_start)
        self.done = np.frombuffer(record.done, dtype=np.uint8) > 0
        self.failed = (np.array(record.ended) != NEVER) & ~self.done
        runs = record.runs
        self.run_job, self.run_place = np.array(runs.job), np.array(runs.element)
        self.begins, self.ends, self.cores = (
            np.array(runs.started),
            np.array(runs.ended),
            np.array(runs.cores, dtype=np.float64),
        )
        self.hours = (self.ends - self.begins) * self.cores / 3_600
        self.makespan = max(float(self.ends.max(initial=0.0)), float(self.came.max(initial=0.0)))

    def figures(self) -> Figures:
        jobs, done = len(self.came), int(self.done.sum())
        names, numbers = self._names(lambda job: f"{job.vo}/{job.owner_group}")
        fair = self._fairness(names, numbers)
        owners = self._names(lambda job: f"{job.owner}@{job.vo}")
        slots = sum(place.element.slots for place in self.record.places)
        never = sum(each.jobs for each in self.record.stuck)
        return Figures(
            jobs=jobs,
            done=done,
            failed=int(self.failed.sum()),
            never=never,
            left=jobs - done - int(self.failed.sum()) - never,
            waits=self._waits(np.ones(jobs, dtype=np.bool_)),
            makespan=self.makespan,
            jobs_per_hour=done / self.makespan * 3_600 if self.makespan else 0.0,
            used=self._used(float(self.hours.sum()), slots),
            attempts=len(self.run_job),
            pilots=self.record.pilots,
            jain=fair.jain,
            deviation=fair.deviation,
            groups=self._lines(names, numbers, fair.by_group),
            owners=self._lines(*owners, None),
            sites=self._sites(),
            never_why=self._never(),
        )

    def _names(self, name_of: Callable[[Requirements], str]) -> tuple[list[str], Numbers]:
        """Return the distinct names that `name_of` gives, and for each job the index of its name."""
        known = {id(asked): name_of(asked) for asked in self.record.asked}
        names, numbers = np.unique([known[id(asked)] for asked in self.record.asked], return_inverse=True)
        return names.tolist(), numbers

    def _used(self, hours: float, slots: int) -> float:
        return hours * 3_600 / (slots * self.makespan) if slots and self.makespan else 0.0

    def _waits(self, chosen: NDArray[np.bool_]) -> Waits | None:
        chosen = chosen & (self.started != NEVER)
        if not chosen.any():
            return None
        waits = self.started[chosen] - self.came[chosen]
        p50, p90, p99 = np.percentile(waits, (50, 90, 99)).tolist()
        return Waits(mean=float(waits.mean()), p50=p50, p90=p90, p99=p99)

    def _lines(
        self, names: list[str], numbers: Numbers, deviations: Sequence[float] | None
    ) -> tuple[OwnerFigures, ...]:
        hours = np.bincount(numbers[self.run_job], weights=self.hours, minlength=len(names))
        lines = [
            OwnerFigures(
                name=name,
                jobs=int((numbers == n).sum()),
                done=int(self.done[numbers == n].sum()),
                waits=self._waits(numbers == n),
                core_hours=float(hours[n]),
                deviation=deviations[n] if deviations else None,
            )
            for n, name in enumerate(names)
        ]
        return tuple(sorted(lines, key=lambda line: (-line.core_hours, line.name)))

    def _fairness(self, names: list[str], numbers: Numbers) -> Fairness:
        """Return the fairness among groups, over periods of an hour. A simulation of over `PERIODS_LIMIT` hours has longer periods instead.

        `names` are the groups; `numbers` has for each job the index of its group.
        """
        count = min(PERIODS_LIMIT, max(1, int(self.makespan / PERIOD_SECONDS)))
        edges = np.linspace(0.0, max(self.makespan, 1.0), count + 1)
        waited, cores = self._waited(), self._asked_cores()
        used, wanted = np.zeros((len(names), count)), np.zeros((len(names), count))
        of_run = numbers[self.run_job]
        for n in range(len(names)):
            runs, jobs = of_run == n, numbers == n
            used[n] = spent(self.begins[runs], self.ends[runs], self.cores[runs], edges)
            wanted[n] = used[n] + spent(self.came[jobs], waited[jobs], cores[jobs], edges)
        return fairness(used, wanted, self._shares(names))

    def _waited(self) -> Floats:
        """Return for each job the time until which it waited: its first start, or the end of the simulation if it never started.

        For jobs that fit no site it is their arrival, so that they do not count as waiting.
        """
        stuck = {each.requirements for each in self.record.stuck}
        never = np.array([asked in stuck for asked in self.record.asked], dtype=np.bool_)
        until = np.where(self.started == NEVER, self.makespan, self.started)
        return np.where(never, self.came, until)

    def _asked_cores(self) -> Floats:
        known = {id(asked): float(processors_needed(asked)) for asked in self.record.asked}
        return np.array([known[id(asked)] for asked in self.record.asked])

    def _shares(self, names: list[str]) -> Floats:
        groups = {f"{vo}/{group}": share for (vo, group), share in self.scenario.groups.items()}
        return np.array([(groups.get(name) or GroupShare()).job_share for name in names])

    def _sites(self) -> tuple[SiteFigures, ...]:
        places = self.record.places
        hours = np.bincount(self.run_place, weights=self.hours, minlength=len(places)).tolist()
        runs = np.bincount(self.run_place, minlength=len(places)).tolist()
        found = []
        for site, numbers in groupby(range(len(places)), key=lambda n: places[n].element.site):
            here = list(numbers)
            slots = sum(places[n].element.slots for n in here)
            used = self._used(sum(hours[n] for n in here), slots)
            found.append(SiteFigures(name=site, slots=slots, runs=sum(runs[n] for n in here), used=used))
        return tuple(sorted(found, key=lambda line: (-line.slots, line.name)))

    def _never(self) -> tuple[Never, ...]:
        """Return how many jobs fit no site, by VO and reasons. Only the `REASONS_SHOWN` largest numbers are returned, the largest first."""
        jobs: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for each in self.record.stuck:
            jobs[each.requirements.vo, each.reasons] += each.jobs
        return tuple(
            Never(vo=vo, jobs=count, reasons=reasons)
            for (vo, reasons), count in jobs.most_common(REASONS_SHOWN)
        )
