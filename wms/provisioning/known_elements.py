"""Known computing elements and counts of their pilots, for explanations of why jobs wait."""

from typing import NamedTuple

from wms.site import ComputingElement


class KnownElement(NamedTuple):
    """A computing element with a stored ad; `fresh` is False if the ad has expired or was withdrawn."""

    element: ComputingElement
    fresh: bool


class PilotCounts(NamedTuple):
    """How many live pilots one VO has at one element, by state, and how many slots the running ones have."""

    running: int = 0
    """How many pilots of the VO run at the element."""
    coming: int = 0
    """How many pilots of the VO were sent to the element and have not started."""
    slots: int = 0
    """How many slots the VO's running pilots at the element have that take jobs."""
    free_slots: int = 0
    """How many slots of the VO's running pilots at the element take jobs and have none."""


class PilotLosses(NamedTuple):
    """How many pilots of an element ended within the last hour, and how many of these were lost."""

    ended: int = 0
    """How many pilots of the element ended within the last hour."""
    lost: int = 0
    """How many pilots of the element failed within the last hour before they sent a message."""
