"""Validation and filtering: whether a job can be brokered at all, and which candidates could run it, by the matcher's clauses."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from wms.broker.candidate import Candidate
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Knowledge
from wms.broker.replicas import lacking_inputs
from wms.errors import Rejected
from wms.matching.clauses import Mismatch, Negative
from wms.matching.grouping import Requirements
from wms.provisioning.demand import JobDemand, pilot_at

JOB_TAG: Final = "job:"
"""The beginning of the reserved tag that binds a pilot to a job. No element has it, so it is not looked at here."""
SLOTS = "slots"
"""The clause of candidates that take no jobs now, or too small ones."""


class RejectedCandidate(Struct, frozen=True, kw_only=True):
    """A candidate where the job cannot run, with every clause that fails there, as `wms why` tells them."""

    candidate: Candidate
    failing: tuple[Mismatch, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The clauses as texts, such as `memory: the job needs 4000 MB, the resource has 2000`."""
        return tuple(f"{each.clause}: {each.detail}" for each in self.failing)


class Filtered(NamedTuple):
    """The candidates where a job can run, and the rejected ones; each in the order of site and name."""

    fitting: tuple[Candidate, ...]
    rejected: tuple[RejectedCandidate, ...]


def validate_job(job: JobToPlace, now: datetime) -> None:
    """Raise Rejected, with a line for each fault, if a job lacks what brokering needs, or if its times contradict each other."""
    faults = tuple(_faults(job, now))
    if faults:
        raise Rejected("NOT_BROKERABLE", "the job cannot be brokered", "correct its description", faults)


def _faults(job: JobToPlace, now: datetime) -> Iterator[str]:
    if not job.executable:
        yield "it names no program to run (executable)"
    for what, files in (("input", job.inputs), ("output", job.outputs)):
        yield from (f"{what} {each.name} has no URL" for each in files if not each.urls)
    yield from (
        f"benchmark {each.benchmark}: result and seconds must be over 0"
        for each in job.runs
        if not (each.result > 0 and each.seconds > 0)
    )
    if job.latest_start and job.latest_start < (job.earliest_start or now):
        yield f"its latest start, {job.latest_start:%Y-%m-%d %H:%M:%S %Z}, is before it may start"


def filter_candidates(
    job: JobToPlace,
    candidates: Iterable[Candidate],
    knowledge: Knowledge,
    negatives: Sequence[Negative] = (),
) -> Filtered:
    """Return the candidates where a job can run, and the others with all their reasons.

    `negatives` are further conditions of the moment: limits, avoided elements. Of candidates with the same site and name the first counts.
    """
    wanted = unbound(job.requirements)
    demand = JobDemand(wanted)
    fitting, rejected = [], []
    for each in _distinct(candidates):
        failing = tuple(_obstacles(job, each, knowledge, demand)) or _held(wanted, each, negatives)
        if failing:
            rejected.append(RejectedCandidate(candidate=each, failing=failing))
        else:
            fitting.append(each)
    return Filtered(tuple(fitting), tuple(rejected))


def unbound(requirements: Requirements) -> Requirements:
    """Return requirements without the reserved tag of a bound job, which only the pilot for it will have."""
    tags = tuple(tag for tag in requirements.tags if not tag.casefold().startswith(JOB_TAG))
    return requirements if len(tags) == len(requirements.tags) else replace(requirements, tags=tags)


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    found: dict[tuple[str, str], Candidate] = {}
    for each in candidates:
        found.setdefault(each.place, each)
    return [found[place] for place in sorted(found)]


def _obstacles(
    job: JobToPlace, candidate: Candidate, knowledge: Knowledge, demand: JobDemand
) -> Iterator[Mismatch]:
    if fault := candidate.element.fault():
        yield Mismatch("resource", fault)
        return
    yield from demand.obstacles(candidate.element)
    if candidate.slots < max(1, job.processors):
        yield Mismatch(
            SLOTS, f"the job needs {max(1, job.processors)}, {candidate.ce} offers {candidate.slots}"
        )
    if lacking := lacking_inputs(job, candidate, knowledge):
        yield lacking


def _held(
    requirements: Requirements, candidate: Candidate, negatives: Sequence[Negative]
) -> tuple[Mismatch, ...]:
    if not negatives:
        return ()
    resource = pilot_at(candidate.element, requirements.vo).resource
    return tuple(no for each in negatives if (no := each(requirements, resource)))
