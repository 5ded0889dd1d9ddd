"""Known computing elements and their pilots, for explanations of why jobs wait."""

from typing import NamedTuple

from wms.site import ComputingElement


class KnownElement(NamedTuple):
    """A computing element with a stored ad. `fresh` is whether the ad is still valid."""

    element: ComputingElement
    fresh: bool


class PilotCounts(NamedTuple):
    """The number of one VO's live pilots at one element, by state, and of their slots."""

    running: int = 0
    """The number of pilots that run."""
    coming: int = 0
    """The number of pilots that were sent and have not started."""
    slots: int = 0
    """The number of slots of the running pilots that take jobs."""
    free_slots: int = 0
    """The number of these slots without a job."""


class PilotLosses(NamedTuple):
    """The number of an element's pilots that ended within the last hour, and of the failed ones among them."""

    ended: int = 0
    """The number of pilots that ended."""
    lost: int = 0
    """The number of pilots that failed before they sent a message."""
