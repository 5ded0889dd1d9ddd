"""Notices of why a computing element gets no jobs or pilots, each of one of three kinds: suppress, delay, avoid.

*Suppress*: a limit in its ad is reached, and nothing is sent until its next ad. *Delay*: too many jobs are being submitted there, or a
rate limit is used up; more are sent later. *Avoid*: it is quarantined or closed by an operator, its endpoint fails, or pilots are lost
there. Other elements are better.

All commands and pages that show an element's state use these notices.
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
"""The least number of lost pilots for which an element is avoided."""


class SinceLastAd(NamedTuple):
    """The jobs matched to an element and the pilots sent to it since its last ad.

    `allowed` is the limit that the ad sets on each of the two numbers until the next ad; None: no limit.
    """

    allowed: int | None = None
    matched: int = 0
    sent: int = 0
    idle: int = 0
    """How many idle pilots of this system are among the jobs that the ad counts as present."""


def notices(
    element: ComputingElement, since: SinceLastAd, health: ElementHealth, losses: PilotLosses, *, fresh: bool
) -> Iterator[Notice]:
    """Yield the notices of an element: on its ad's limits, on its health and on lost pilots.

    `fresh` says whether its ad is still valid. `since` counts jobs and pilots sent since that ad.
    """
    if fresh:
        # An idle pilot that gets a job stays the same job in the source's count.
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
    """Return the notice that an element is avoided, because of its health or lost pilots; None if it is not avoided."""
    if health.state != "healthy":
        return Notice("avoid", health.text())
    if losses.lost < FEW or 2 * losses.lost <= losses.ended:
        return None
    return Notice("avoid", f"{losses.lost:,} of {losses.ended:,} pilots died unseen within the hour")


def shut_out(known: Mapping[CeId, ElementHealth]) -> dict[CeId, str]:
    """Return the elements that get no work, each with the reason as text. An empty element name stands for the whole site."""
    return {
        place: f"{'/'.join(filter(None, place))}: {Notice('avoid', health.text()).text()}"
        for place, health in known.items()
        if health.avoided
    }


def why_shut(shut: Mapping[CeId, str], site: str, ce: str) -> str | None:
    """Return why an element, or its whole site, gets no work, from the result of `shut_out`; None if it gets work."""
    return shut.get(CeId(site, "")) or shut.get(CeId(site, ce))
