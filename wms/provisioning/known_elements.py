"""Computing elements that are known, with counts of the pilots there: what explanations start from."""

from typing import NamedTuple

from wms.site import ComputingElement


class KnownElement(NamedTuple):
    """A computing element that advertises itself (`fresh`) or did within memory."""

    element: ComputingElement
    fresh: bool


class PilotCounts(NamedTuple):
    """The pilots of one VO on one element."""

    running: int = 0
    coming: int = 0
    """Pilots that are submitted and have not begun."""
    slots: int = 0
    """Of the pilots that run and take jobs."""
    free_slots: int = 0


class PilotLosses(NamedTuple):
    """An element's pilots that ended within the last hour."""

    ended: int = 0
    lost: int = 0
    """Died before they were seen at work."""
