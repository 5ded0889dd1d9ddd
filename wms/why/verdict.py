"""What each computing element says to work that waits: every clause that fails there, by the matcher's own functions."""

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
"""The clause of those elements that get no work, whatever limits there are."""


class ElementSupply(Struct, frozen=True, kw_only=True):
    """A computing element that is or was known, and the pilots that one VO has there."""

    element: ComputingElement
    fresh: bool = True
    """It advertises itself now; otherwise its last ad has expired or was withdrawn."""
    running: int = 0
    coming: int = 0
    """Pilots that are submitted and have not begun."""
    slots: int = 0
    """Of the pilots that run and take jobs."""
    free_slots: int = 0

    @classmethod
    def of(cls, known: KnownElement, pilots: PilotCounts) -> Self:
        """Return an element with the pilots counted there."""
        return cls(element=known.element, fresh=known.fresh, **pilots._asdict())


class Verdict(NamedTuple):
    """What a place says: clauses that fail whenever the job asks, and limits that hold it back for now."""

    place: ElementSupply
    failing: tuple[Mismatch, ...]
    held: tuple[Mismatch, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the job could run there, limits aside."""
        return not self.failing

    @property
    def avoided(self) -> bool:
        """Whether it gets no work, limits or not."""
        return any(each.clause == AVOIDED for each in self.held)

    @property
    def opens(self) -> bool:
        """Whether it could run there now."""
        return self.place.fresh and not self.failing and not self.held


def verdicts(
    requirements: Requirements, places: Iterable[ElementSupply], negatives: Sequence[Negative] = ()
) -> list[Verdict]:
    """Return what every place says, in the order given; a place whose ad is faulty says so."""
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
    """Return how many jobs of a kind could run at places at once, were they empty."""
    processors = slots_needed(requirements)
    return sum(each.element.slots // max(1, min(processors, each.element.slots_per_pilot)) for each in places)


def failures(found: Iterable[Verdict]) -> dict[str, int]:
    """Return at how many places each clause fails, the commonest first."""
    counts = Counter(mismatch.clause for verdict in found for mismatch in verdict.failing)
    return dict(counts.most_common())
