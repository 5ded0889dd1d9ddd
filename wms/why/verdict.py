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
"""The clause of elements that get no work, whatever the limits are."""


class ElementSupply(Struct, frozen=True, kw_only=True):
    """A known computing element, and the pilots that one VO has there."""

    element: ComputingElement
    fresh: bool = True
    """Whether it advertises itself now; otherwise its ad has expired or was withdrawn."""
    running: int = 0
    coming: int = 0
    """Pilots that are sent and have not begun."""
    slots: int = 0
    """Slots of the pilots that run and take jobs."""
    free_slots: int = 0

    @classmethod
    def of(cls, known: KnownElement, pilots: PilotCounts) -> Self:
        """Return an element with its counted pilots."""
        return cls(element=known.element, fresh=known.fresh, **pilots._asdict())


class Verdict(NamedTuple):
    """A place's verdict: clauses that always fail, and limits that hold the job back for now."""

    place: ElementSupply
    failing: tuple[Mismatch, ...]
    held: tuple[Mismatch, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the job could run there, apart from limits."""
        return not self.failing

    @property
    def avoided(self) -> bool:
        """Whether the place gets no work, whatever the limits."""
        return any(each.clause == AVOIDED for each in self.held)

    @property
    def opens(self) -> bool:
        """Whether it could run there now."""
        return self.place.fresh and not self.failing and not self.held


def verdicts(
    requirements: Requirements, places: Iterable[ElementSupply], negatives: Sequence[Negative] = ()
) -> list[Verdict]:
    """Return the verdict of every place, in their order; a place with a faulty ad fails by that."""
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
    """Return how many jobs of a kind empty places could run at once."""
    processors = slots_needed(requirements)
    return sum(each.element.slots // max(1, min(processors, each.element.slots_per_pilot)) for each in places)


def failures(found: Iterable[Verdict]) -> dict[str, int]:
    """Return how many places fail at each clause, the commonest first."""
    counts = Counter(mismatch.clause for verdict in found for mismatch in verdict.failing)
    return dict(counts.most_common())
