"""Filters the candidates where a job could run, by the same rules as the matcher."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from wms.broker.candidate import Candidate
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Knowledge
from wms.broker.replicas import lacking_inputs
from wms.matching.clauses import Mismatch, Negative
from wms.matching.grouping import Requirements
from wms.provisioning.demand import JobDemand, pilot_at

JOB_TAG: Final = "job:"
"""The prefix of the reserved tag that ties a job to a pilot sent for it. No computing element has it, so filtering ignores it."""
SLOTS = "slots"
"""The name of the rule that rejects a candidate with too few slots for the job, or with none now."""


class RejectedCandidate(Struct, frozen=True, kw_only=True):
    """A computing element where the job cannot run, with every rule that it fails there."""

    candidate: Candidate
    failing: tuple[Mismatch, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The failed rules as texts, such as `memory: the job needs 4000 MB, the resource has 2000`."""
        return tuple(f"{each.clause}: {each.detail}" for each in self.failing)


class Filtered(NamedTuple):
    """The candidates where a job can run, and the rejected ones, both sorted by site and computing element name."""

    fitting: tuple[Candidate, ...]
    rejected: tuple[RejectedCandidate, ...]


def filter_candidates(
    job: JobToPlace,
    candidates: Iterable[Candidate],
    knowledge: Knowledge,
    negatives: Sequence[Negative] = (),
) -> Filtered:
    """Return the candidates where a job can run, and the rejected ones with every reason.

    `negatives` are further checks that the matcher makes, such as limits or blocked elements. They are applied to candidates that pass all other
    checks. Of several candidates with the same site and name only the first counts.
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
    """Return requirements without the reserved `job:` tag, which only the pilot that is sent for the job will have."""
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
