"""A recording of a real system, as lines of JSON: the requirements, times and run times of its jobs, and the ads of its sites."""

from collections.abc import Iterable

import msgspec

from wms.errors import Rejected
from wms.matching.grouping import Requirements
from wms.simulation.workload import Workload, WorkloadJob, by_time
from wms.site import ComputingElement

LINE_LIMIT = 1_000_000


class RecordedJob(msgspec.Struct, frozen=True, kw_only=True, tag="job"):
    """A job of the real system as recorded for a simulation. Only jobs that were started are recorded."""

    at: float
    """When the job was submitted, in seconds since 1970."""
    requirements: Requirements
    run_seconds: float
    user_priority: float = 1.0
    site: str = ""


class RecordedElement(msgspec.Struct, frozen=True, kw_only=True, tag="element"):
    """A computing element of the real system as recorded for a simulation, with the properties that its ad gave."""

    element: ComputingElement


Recorded = RecordedJob | RecordedElement

_DECODER: msgspec.json.Decoder[Recorded] = msgspec.json.Decoder(Recorded)


def read(lines: Iterable[str], most: int) -> Workload:
    """Parse the lines of a recording. Return its first `most` jobs by submission time, and its computing elements, as a workload.

    Raise Rejected for an invalid line, with its number, and for a recording without jobs.
    """
    jobs: list[RecordedJob] = []
    elements: list[ComputingElement] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match _decoded(number, line):
            case RecordedJob() as job:
                jobs.append(job)
            case RecordedElement(element=element):
                elements.append(element)
    if not jobs:
        raise Rejected(
            "BAD_RECORDING",
            "there is no job in the recording",
            "`wms record FILE` writes one of jobs that ran",
        )
    jobs.sort(key=lambda job: job.at)
    same: dict[Requirements, Requirements] = {}
    return Workload(by_time(_arrival(job, same) for job in jobs[:most]), tuple(elements))


def _decoded(number: int, line: str) -> Recorded:
    if len(line) > LINE_LIMIT:
        raise _bad(number, f"longer than {LINE_LIMIT:,} characters")
    try:
        found = _DECODER.decode(line)
    except msgspec.MsgspecError as error:
        raise _bad(number, str(error)) from None
    if isinstance(found, RecordedJob) and not (0 <= found.run_seconds <= 1e9 and 0 <= found.at <= 1e11):
        raise _bad(number, "its times are none")
    return found


def _bad(number: int, what: str) -> Rejected:
    return Rejected("BAD_RECORDING", f"line {number}: {what}", "`wms record FILE` writes recordings")


def _arrival(job: RecordedJob, same: dict[Requirements, Requirements]) -> WorkloadJob:
    return WorkloadJob(
        at=job.at,
        requirements=same.setdefault(job.requirements, job.requirements),
        run_seconds=job.run_seconds,
        user_priority=job.user_priority,
        site=job.site,
    )
