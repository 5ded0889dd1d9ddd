"""Known computing elements and the pilots there, for explanations."""

from typing import NamedTuple

from wms.site import ComputingElement


class KnownElement(NamedTuple):
    """A computing element that advertises itself (`fresh`) or did of late."""

    element: ComputingElement
    fresh: bool


class PilotCounts(NamedTuple):
    """The pilots of one VO on one element."""

    running: int = 0
    coming: int = 0
    """Pilots that are sent and have not begun."""
    slots: int = 0
    """Slots of the pilots that run and take jobs."""
    free_slots: int = 0


class PilotLosses(NamedTuple):
    """An element's pilots that ended within the last hour."""

    ended: int = 0
    lost: int = 0
    """Pilots that died before they were seen at work."""
