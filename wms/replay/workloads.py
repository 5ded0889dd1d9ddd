"""Reads the workloads of simulations from files: recordings of a system, or traces in SWF."""

from functools import cache
from pathlib import Path

from wms.matching.grouping import Requirements, processor_tags, segment
from wms.replay.plan import cpu_time_of, identity_of
from wms.replay.swf import Trace, TraceJob
from wms.replay.trace_file import read_lines, read_trace
from wms.simulation import recording
from wms.simulation.workload import Workload, WorkloadJob, by_time
from wms.site import MAX_PROCESSORS


def read(path: Path, most: int) -> Workload:
    """Return the first `most` jobs of the workload in a file: a recording if the name ends in .jsonl or .jsonl.gz, else a trace in SWF.

    Raise Rejected if the file is neither.
    """
    if ".jsonl" in path.suffixes[-2:]:
        return read_lines(path, recording.LINE_LIMIT, lambda lines: recording.read(lines, most))
    return of_trace(read_trace(path, most))


def of_trace(trace: Trace) -> Workload:
    """Return the workload of a trace for a simulation. Its jobs may run at the sites where they ran."""
    return Workload(by_time(_arrival(job, trace.partitions) for job in trace.jobs))


def _arrival(job: TraceJob, names: dict[int, str]) -> WorkloadJob:
    site = names.get(job.partition, f"partition{job.partition}") if job.partition >= 0 else ""
    return WorkloadJob(
        at=job.submit_time,
        requirements=_requirements(
            job.user, job.group, site, segment(cpu_time_of(job)), min(max(1, job.processors), MAX_PROCESSORS)
        ),
        run_seconds=max(0.0, job.run_time),
        site=site,
    )


@cache
def _requirements(user: int, group: int, site: str, cpu_segment: int, processors: int) -> Requirements:
    identity = identity_of(user, group)
    return Requirements(
        owner=identity.owner,
        owner_group=identity.group,
        vo=identity.vo,
        setup="",
        cpu_segment=cpu_segment,
        sites=(site,) if site else (),
        tags=processor_tags(processors),
    )
