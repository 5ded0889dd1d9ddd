"""The plan of a replay: jobs that sleep as long as those of the trace ran, divided by the speed-up, and sites to run them.

User and group of the trace become owner and VO; its partition becomes the site. All sites are this machine, advertised under different names. Jobs
that do not belong to the replay lack a tag that these sites require.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from wms.ids import Identity
from wms.jobdesc.description import JobDescription
from wms.jobdesc.validation import YEAR
from wms.replay.swf import Trace, TraceJob
from wms.site import ComputingElement

TAG = "trace-replay"
CE = "trace"
DEFAULT_CPU_TIME = 86_400
MAX_CPU_TIME = 864_000


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a trace as it will be submitted."""

    due: float
    """When to submit the job, in seconds after the replay begins."""
    identity: Identity
    site: str
    """The site where the job must run; empty if it may run at any."""
    seconds: float
    """For how many seconds the job sleeps."""
    description: JobDescription


class TracePlan(msgspec.Struct, frozen=True):
    """The jobs of a replay in the order in which they are due, and the computing elements that run them."""

    jobs: tuple[Planned, ...]
    elements: tuple[ComputingElement, ...]


def plan_of(trace: Trace, *, speedup: float, slots: int, sites_limit: int | None = None) -> TracePlan:
    """Plan the replay of a trace: times are divided by `speedup`, and each pilot has `slots` slots.

    The partitions with the most jobs become sites, at most `sites_limit`; these share the jobs of the other partitions. None: each partition becomes
    a site.
    """
    sites = _sites(trace, sites_limit)
    first = trace.jobs[0].submit_time
    jobs = tuple(
        _planned(job, sites.get(job.partition, ""), (job.submit_time - first) / speedup, speedup, slots)
        for job in trace.jobs
    )
    return TracePlan(jobs, tuple(_elements(jobs, slots)))


def _sites(trace: Trace, limit: int | None) -> dict[int, str]:
    """Return the name of the site for each partition. The `limit` partitions with the most jobs get their own; the others are spread over these."""
    counts = Counter(job.partition for job in trace.jobs if job.partition >= 0)
    ranked = sorted(counts, key=lambda partition: (-counts[partition], partition))
    kept = ranked[:limit]
    names = [trace.partitions.get(partition, f"partition{partition}") for partition in kept]
    return {partition: names[place % len(names)] for place, partition in enumerate(ranked)}


def _planned(job: TraceJob, site: str, due: float, speedup: float, slots: int) -> Planned:
    seconds = round(max(0.0, job.run_time) / speedup, 3)
    return Planned(
        due=due,
        identity=identity_of(job.user, job.group),
        site=site,
        seconds=seconds,
        description=JobDescription(
            name=f"trace-{job.number}",
            executable="sleep",
            arguments=(f"{seconds:g}",),
            # The requested time decides the queue; if the trace does not have it, the run time does.
            cpu_time=cpu_time_of(job),
            processors=min(max(1, job.processors), slots),
            sites=(site,) if site else (),
            tags=(TAG,),
        ),
    )


def identity_of(user: int, group: int) -> Identity:
    """Return the owner, group and VO that stand for a user and a group of a trace, given by their numbers."""
    owner, name = (str(number) if number >= 0 else "none" for number in (user, group))
    return Identity(f"user{owner}", f"group{name}", f"vo{name}")


def cpu_time_of(job: TraceJob) -> int:
    """Return the CPU time that the job of a trace requests here, in seconds: its requested or else its run time, within bounds."""
    asked = job.requested_time if job.requested_time > 0 else job.run_time
    return int(min(max(1, asked), YEAR, MAX_CPU_TIME)) if asked >= 0 else DEFAULT_CPU_TIME


def _elements(jobs: Sequence[Planned], slots: int) -> list[ComputingElement]:
    anywhere = {job.identity.vo for job in jobs if not job.site}
    vos: dict[str, set[str]] = {"anywhere": set()} if anywhere else {}
    for job in jobs:
        if job.site:
            vos.setdefault(job.site, set()).add(job.identity.vo)
    return [_element(site, own | anywhere, slots) for site, own in sorted(vos.items())]


def _element(site: str, vos: set[str], slots: int) -> ComputingElement:
    return ComputingElement(
        site=site,
        ce=CE,
        setup="default",
        dispatcher="local",
        # Room for a pilot of each VO at a time, since a pilot serves one VO.
        slots=slots * len(vos),
        slots_per_pilot=slots,
        cores=slots * len(vos),
        cores_per_pilot=slots,
        max_cpu_time=MAX_CPU_TIME,
        vos=tuple(vos),
        tags=(TAG,),
        required_tags=(TAG,),
    )
