"""A workload: the requirements, arrivals and run times of jobs, and the computing elements on which they are simulated."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec import Struct

from wms.matching.grouping import DEFAULT_SEGMENTS, Requirements, processors_needed
from wms.site import ComputingElement

CE = "ce"
DAY_SECONDS = 86_400.0


class WorkloadJob(Struct, frozen=True, kw_only=True, gc=False):
    """One job of a workload: when it arrives, what it requires, and how long it runs."""

    at: float
    """When the job arrives, in seconds after the first arrival of the workload."""
    requirements: Requirements
    run_seconds: float
    """How many seconds the job runs on a machine of speed 1."""
    user_priority: float = 1.0
    site: str = ""
    """The site where the job ran in the real system; empty if that is unknown."""


class Workload(Struct, frozen=True):
    """The jobs of a workload in the order of their arrivals, and its computing elements if these were recorded."""

    arrivals: tuple[WorkloadJob, ...]
    elements: tuple[ComputingElement, ...] = ()

    @property
    def span_seconds(self) -> float:
        """The seconds between the first and the last arrival; 0 without jobs."""
        return self.arrivals[-1].at - self.arrivals[0].at if self.arrivals else 0.0


def elements_for(workload: Workload, load: float) -> list[ComputingElement]:
    """Return the computing elements of a workload: the recorded ones, or computed ones, one for each site, if none were recorded.

    A trace contains the site of each job, but not the size of the site. So a site gets the slots that its jobs keep busy to the fraction `load`:
    their core seconds divided by the time over which they arrived, and by `load`. A site accepts the VOs whose jobs ran there. Jobs without a
    site share a site named "anywhere".
    """
    if workload.elements:
        return list(workload.elements)
    work: defaultdict[str, float] = defaultdict(float)
    cores: Counter[str] = Counter()
    vos: defaultdict[str, set[str]] = defaultdict(set)
    for job in workload.arrivals:
        site, processors = job.site or "anywhere", processors_needed(job.requirements)
        work[site] += job.run_seconds * processors
        cores[site] = max(cores[site], processors)
        vos[site].add(job.requirements.vo)
    seconds = workload.span_seconds or max((job.run_seconds for job in workload.arrivals), default=0.0) or 1.0
    return [
        element_of(site, math.ceil(work[site] / seconds / load), cores[site], vos[site])
        for site in sorted(work)
    ]


def element_of(site: str, slots: int, cores: int, vos: Iterable[str] = ()) -> ComputingElement:
    """Return a computing element with at least `slots` slots, whose pilots have `cores` cores each. It takes jobs of any length.

    It admits only these VOs; all if there are none.
    """
    return ComputingElement(
        site=site,
        ce=CE,
        slots=max(1, math.ceil(slots / cores)) * cores,
        max_cpu_time=DEFAULT_SEGMENTS[-1],
        vos=tuple(vos),
        cores=cores,
        cores_per_pilot=cores,
        slots_per_pilot=cores,
    )


def by_time(arrivals: Iterable[WorkloadJob]) -> tuple[WorkloadJob, ...]:
    """Return the jobs in the order of their arrivals, with times in seconds since the first arrival."""
    ordered = sorted(arrivals, key=lambda job: job.at)
    first = ordered[0].at if ordered else 0.0
    return tuple(
        WorkloadJob(
            at=job.at - first,
            requirements=job.requirements,
            run_seconds=job.run_seconds,
            user_priority=job.user_priority,
            site=job.site,
        )
        for job in ordered
    )
