"""Finds weaker requirements with which jobs could run at more computing elements, in the form of replies."""

from collections.abc import Iterable

from wms.matching.grouping import Requirements
from wms.messages import replies
from wms.why.relaxation import RelaxedFit, Segments, changes, openings
from wms.why.verdict import Verdict

SITES_SHOWN = 8


def relaxations(
    wanted: Requirements, found: Iterable[Verdict], segments: Segments
) -> tuple[replies.Relaxation, ...]:
    """Return the smallest changes of the requirements `wanted` with which the job would fit more computing elements, the most slots first.

    `found` are the verdicts of computing elements on the present requirements. `segments` are the CPU segments of task queues, in seconds.
    """
    return tuple(relaxation(wanted, each) for each in openings(wanted, found, segments))


def relaxation(before: Requirements, opening: RelaxedFit) -> replies.Relaxation:
    """Return one change as a part of a reply. `before` are the present requirements, `opening` the changed ones with what they open."""
    sites = sorted({place.element.site for place in opening.places})
    return replies.Relaxation(
        clauses=opening.clauses,
        changes=tuple(changes(before, opening.requirements)),
        slots=opening.slots,
        free_slots=sum(place.free_slots for place in opening.places),
        elements=len(opening.places),
        sites=tuple(sites[:SITES_SHOWN]),
        sites_total=len(sites),
    )
