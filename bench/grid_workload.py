"""The workload of the simulated grid: made by chance, with bursts and outliers, or from a trace of a real grid."""

import gzip
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.grid import UNIT, GridJob, GridSite, make_sites
from wms.broker.job_to_place import FileToMove, JobToPlace, ReferenceRun
from wms.matching.grouping import Requirements
from wms.replay.swf import TraceJob, read

REQUIREMENTS = Requirements(owner="ada", owner_group="users", vo="vo", setup="", cpu_segment=500)
INPUT, OUTPUT = "https://storage.example/in", "https://storage.example/out"
_LOOPS, _CRASHES = 0.02, 0.01
"""The shares of jobs that run five times as long as their like, and of those that end almost at once."""


class JobClass:
    """Jobs that are alike: their typical work, files, and what their user says of them."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.work = min(40_000.0, max(600.0, rng.lognormvariate(8.6, 0.8)))
        self.scatter = rng.uniform(0.1, 0.4)
        self.bytes_in = int(rng.lognormvariate(20.0, 1.5)) if rng.random() < 0.7 else 0
        self.bytes_out = int(rng.lognormvariate(18.5, 1.2))
        names = ("SI00", "specFP2000")[: rng.choice((0, 1, 2))]
        self.runs = tuple(
            ReferenceRun(benchmark=each, result=UNIT, seconds=self.work * rng.lognormvariate(0.0, 0.2))
            for each in names
        )
        self.name = f"class{number}"

    def job(self, rng: random.Random, at: float) -> GridJob:
        work = self.work * rng.lognormvariate(0.0, self.scatter)
        lot = rng.random()
        work *= 5.0 if lot < _LOOPS else 0.02 if lot < _LOOPS + _CRASHES else 1.0
        sizes = self.bytes_in, self.bytes_out
        wanted = job_to_place(self.name, *sizes, runs=self.runs)
        slowness = rng.lognormvariate(0.0, 0.4)
        return GridJob(at, work, None, wanted, *sizes, slowness=slowness)


def job_to_place(
    job_class: str, bytes_in: int = 0, bytes_out: int = 0, runs: tuple[ReferenceRun, ...] = ()
) -> JobToPlace:
    inputs = (FileToMove(name="in", urls=(INPUT,), size=bytes_in),) if bytes_in else ()
    outputs = (FileToMove(name="out", urls=(OUTPUT,), size=bytes_out),) if bytes_out else ()
    return JobToPlace(
        requirements=REQUIREMENTS, executable="x", job_class=job_class, inputs=inputs, outputs=outputs, runs=runs,
    )  # fmt: skip


def made_grid(seed: int, sites: int, jobs: int) -> tuple[list[GridSite], list[GridJob]]:
    """Return sites and jobs made by chance: the broker's, a job each two minutes for 16 sites, and local ones that load the sites."""
    rng = random.Random(seed)
    sizes = [
        (f"site{number:02}", int(min(300, max(4, rng.lognormvariate(3.3, 1.0))))) for number in range(sites)
    ]
    made = make_sites(rng, sizes)
    classes = [JobClass(rng, number) for number in range(12)]
    period = 120.0 * 16 / sites
    at, ours = 0.0, []
    for _ in range(jobs):
        at += rng.expovariate(1 / period)
        ours.append(rng.choice(classes).job(rng, at))
    local = [job for number, site in enumerate(made) for job in _local(rng, number, site, at)]
    return made, sorted([*ours, *local], key=lambda job: job.submitted)


def _local(rng: random.Random, number: int, site: GridSite, until: float) -> Iterator[GridJob]:
    """Yield jobs of local users, in bursts, that use a site by 60 to 98 %, more by day than by night."""
    use, mean, burst = rng.uniform(0.6, 0.98), 5_000.0, rng.choice((1, 3, 10))
    rate = use * site.slots * site.speed / mean / burst
    at = -20_000.0
    while at < until:
        at += rng.expovariate(rate * (1 + 0.3 * math.sin(at / 86_400 * 2 * math.pi)))
        for _ in range(burst):
            yield GridJob(max(0.0, at), rng.expovariate(1 / mean), number)


def trace_grid(path: Path, seed: int, sites: int, jobs: int) -> tuple[list[GridSite], list[GridJob]]:
    """Return the largest sites of a trace and its jobs there; `jobs` of them, drawn by chance, are the broker's.

    A trace does not tell speeds: sites get them by chance, and a job's work is its run time. A site's slots are such that the trace
    uses it by 85 %. A class is a user's jobs, of whose run times the user says nothing.
    """
    rng = random.Random(seed)
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        trace = read(lines, 10_000_000)
    sound = [each for each in trace.jobs if each.run_time > 0 and each.partition > 0]
    largest = [part for part, _ in Counter(each.partition for each in sound).most_common(sites)]
    numbers = {part: number for number, part in enumerate(largest)}
    there = [each for each in sound if each.partition in numbers]
    slots = _slots(there)
    made = make_sites(rng, [(trace.partitions.get(part, str(part)), slots[part]) for part in largest])
    drawn = set(rng.sample(range(len(there)), min(jobs, len(there))))
    return made, _of_trace(rng, there, drawn, numbers, made)


def _slots(jobs: Sequence[TraceJob]) -> dict[int, int]:
    work: defaultdict[int, float] = defaultdict(float)
    for each in jobs:
        work[each.partition] += each.run_time
    lasted = jobs[-1].submit_time - jobs[0].submit_time
    return {part: max(2, math.ceil(seconds / lasted / 0.85)) for part, seconds in work.items()}


def _of_trace(
    rng: random.Random,
    jobs: Sequence[TraceJob],
    drawn: set[int],
    numbers: dict[int, int],
    sites: Sequence[GridSite],
) -> list[GridJob]:
    made = []
    for number, each in enumerate(jobs):
        if number in drawn:
            sizes = int(rng.lognormvariate(18.0, 1.5)), int(rng.lognormvariate(17.0, 1.0))
            wanted = job_to_place(f"user{each.user}", *sizes)
            slowness = rng.lognormvariate(0.0, 0.4)
            made.append(GridJob(each.submit_time, each.run_time, None, wanted, *sizes, slowness=slowness))
        else:
            home = numbers[each.partition]
            # Its run time was measured at its site, whatever speed that has here.
            made.append(GridJob(each.submit_time, each.run_time * sites[home].speed, home))
    return made
