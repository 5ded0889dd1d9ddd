"""What keeps jobs and pilots from a computing element, in three words: suppress, delay, avoid.

*Suppress*: a limit that its ad states is reached, and nothing comes there until its next ad. *Delay*: too many are being
submitted there, or a rate is used up; more come later. *Avoid*: it was quarantined, or shut by an operator, its door is shut, or
pilots die there, so that others are better.

What people are told of an element comes from here, whoever tells it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from wms.ids import CeId
from wms.matching.ad_limits import Notice, notice
from wms.provisioning.health import ElementHealth
from wms.provisioning.known_elements import PilotLosses
from wms.site import ComputingElement

FEW = 3
"""So many pilots may be lost before anything is said of it."""


class Since(NamedTuple):
    """What an element's ad lets come until the next (None: it states no limit), and what has come since."""

    allowed: int | None = None
    matched: int = 0
    sent: int = 0
    idle: int = 0
    """Of our pilots that the ad's source counts as jobs, those that have none."""


def notices(
    element: ComputingElement, since: Since, health: ElementHealth, losses: PilotLosses, *, fresh: bool
) -> Iterator[Notice]:
    """Yield what is to be said of an element: by what its ad lets come, by how it was judged, by what became of its pilots."""
    if fresh:
        # One of them that is given a job is the same job there.
        element = replace(
            element,
            current_jobs=max(0, element.current_jobs - since.idle),
            current_submitting_jobs=max(0, element.current_submitting_jobs - since.idle),
        )
        of_jobs = notice(element, since.allowed, since.matched)
        yield from filter(None, (of_jobs, notice(element, since.allowed, since.sent, "pilots")))
    elif since.allowed is not None:
        yield Notice("suppress", "nothing comes before its next ad")
    if found := avoidance(health, losses):
        yield found


def avoidance(health: ElementHealth, losses: PilotLosses) -> Notice | None:
    """Return why an element is better avoided; None if it is not."""
    if health.state != "healthy":
        return Notice("avoid", health.text())
    if losses.lost < FEW or 2 * losses.lost <= losses.ended:
        return None
    return Notice("avoid", f"{losses.lost:,} of {losses.ended:,} pilots died unseen within the hour")


def shut_out(known: Mapping[CeId, ElementHealth]) -> dict[CeId, str]:
    """Return the elements, and with no element the sites, that get no work, and in words which and why."""
    return {
        place: f"{'/'.join(filter(None, place))}: {Notice('avoid', health.text()).text()}"
        for place, health in known.items()
        if health.avoided
    }


def why_shut(shut: Mapping[CeId, str], site: str, ce: str) -> str | None:
    """Return why an element gets no work: by its site, where that is shut as a whole; None if it does."""
    return shut.get(CeId(site, "")) or shut.get(CeId(site, ce))
