"""Whether waiting jobs could run at each computing element, with every clause that fails there, by the matcher's own functions."""

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
"""The code of an element that gets no work at all for now, independent of limits."""


class ElementSupply(Struct, frozen=True, kw_only=True):
    """A known computing element, and how many pilots and slots one VO has there."""

    element: ComputingElement
    fresh: bool = True
    """Whether the element's ad is valid; otherwise it has expired or was withdrawn."""
    running: int = 0
    coming: int = 0
    """How many pilots were sent to the element and have not started."""
    slots: int = 0
    """How many job slots the running pilots have in total. Pilots that accept no more jobs do not count."""
    free_slots: int = 0

    @classmethod
    def of(cls, known: KnownElement, pilots: PilotCounts) -> Self:
        """Return the supply that an element and the pilot counts of one VO there make."""
        return cls(element=known.element, fresh=known.fresh, **pilots._asdict())


class Verdict(NamedTuple):
    """What keeps a job from one element.

    `failing` are the clauses that fail as long as the job and the ad stay as they are. `held` are the limits that hold the job back now.
    """

    place: ElementSupply
    failing: tuple[Mismatch, ...]
    held: tuple[Mismatch, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the job could run at the element if no limit held it back."""
        return not self.failing

    @property
    def avoided(self) -> bool:
        """Whether the element gets no work at all for now, for example because it is quarantined or closed by an operator."""
        return any(each.clause == AVOIDED for each in self.held)

    @property
    def opens(self) -> bool:
        """Whether the job could run at the element now: the ad is valid, and nothing fails or holds it back."""
        return self.place.fresh and not self.failing and not self.held


def verdicts(
    requirements: Requirements, places: Iterable[ElementSupply], negatives: Sequence[Negative] = ()
) -> list[Verdict]:
    """Return what keeps a job with these requirements from each element, in the order of `places`.

    `negatives` are further checks, such as limits. They are made only where no clause fails. An element with a faulty ad counts as not fitting.
    """
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
    """Return how many jobs with these requirements the elements could run at the same time if they were empty."""
    processors = slots_needed(requirements)
    return sum(each.element.slots // max(1, min(processors, each.element.slots_per_pilot)) for each in places)


def failures(found: Iterable[Verdict]) -> dict[str, int]:
    """Return at how many elements each clause fails, by the clause's name, the most frequent first."""
    counts = Counter(mismatch.clause for verdict in found for mismatch in verdict.failing)
    return dict(counts.most_common())
