"""The verdict of each computing element on waiting work: every clause that fails there, by the matcher's own functions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from msgspec import Struct

from wms.matching.clauses import Mismatch, Negative
from wms.matching.grouping import Requirements, slots_needed
from wms.provisioning.demand import JobDemand, pilot_at
from wms.provisioning.known_elements import KnownElement, PilotCounts
from wms.site import ComputingElement

AVOIDED = "CE_AVOIDED"
"""The clause of elements that get no work at all, whatever the limits are."""


class ElementSupply(Struct, frozen=True, kw_only=True):
    """A known computing element, and the pilots of one VO there."""

    element: ComputingElement
    fresh: bool = True
    """Whether the element advertises itself now. Otherwise its ad has expired or was withdrawn."""
    running: int = 0
    coming: int = 0
    """The number of pilots that are sent and have not started."""
    slots: int = 0
    """The number of slots of running pilots that accept jobs."""
    free_slots: int = 0

    @classmethod
    def of(cls, known: KnownElement, pilots: PilotCounts) -> Self:
        """Return the supply of an element with these pilot counts."""
        return cls(element=known.element, fresh=known.fresh, **pilots._asdict())


class Verdict(NamedTuple):
    """The verdict of one element on a job: clauses that always fail, and limits that hold the job back for now."""

    place: ElementSupply
    failing: tuple[Mismatch, ...]
    held: tuple[Mismatch, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the job could run at the element, apart from limits."""
        return not self.failing

    @property
    def avoided(self) -> bool:
        """Whether the element gets no work, whatever the limits are."""
        return any(each.clause == AVOIDED for each in self.held)

    @property
    def opens(self) -> bool:
        """Whether the job could run at the element now."""
        return self.place.fresh and not self.failing and not self.held


def verdicts(
    requirements: Requirements, places: Iterable[ElementSupply], negatives: Sequence[Negative] = ()
) -> list[Verdict]:
    """Return the verdict of each element, in the order of `places`. An element with a faulty ad fails."""
    wanted = JobDemand(requirements)
    found = []
    for place in places:
        failing = tuple(wanted.obstacles(place.element))
        held = () if failing else _held(requirements, place, negatives)
        found.append(Verdict(place, failing, held))
    return found


def _held(
    requirements: Requirements, place: ElementSupply, negatives: Sequence[Negative]
) -> tuple[Mismatch, ...]:
    if not negatives:
        return ()
    resource = pilot_at(place.element, requirements.vo).resource
    return tuple(no for each in negatives if (no := each(requirements, resource)))


def room(requirements: Requirements, places: Iterable[ElementSupply]) -> int:
    """Return the number of jobs with these requirements that the elements could run concurrently if they were empty."""
    processors = slots_needed(requirements)
    return sum(each.element.slots // max(1, min(processors, each.element.slots_per_pilot)) for each in places)


def failures(found: Iterable[Verdict]) -> dict[str, int]:
    """Return the number of elements that fail at each clause, the commonest clause first."""
    counts = Counter(mismatch.clause for verdict in found for mismatch in verdict.failing)
    return dict(counts.most_common())
