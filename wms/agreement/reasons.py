"""Why an agreement is in its state: coded reasons. Codes never change their meaning."""

from enum import StrEnum

import msgspec


class AgreementReason(StrEnum):
    """The code of a decision on an agreement."""

    GRANTED = "GRANTED"
    """CPUs are reserved at the earliest start in the window."""
    MOVED = "MOVED"
    """A flexible reservation now starts at another time of its window."""
    CONFIRMED = "CONFIRMED"
    """The broker chose it."""
    INVALID_OFFER = "INVALID_OFFER"
    """The terms contradict each other or are out of the template's bounds."""
    NO_RESERVATIONS = "NO_RESERVATIONS"
    """The site makes no reservations on this computing element."""
    WINDOW_REVERSED = "WINDOW_REVERSED"
    """The latest start is before the earliest."""
    WINDOW_OVER = "WINDOW_OVER"
    """The latest start has passed."""
    BEYOND_HORIZON = "BEYOND_HORIZON"
    """The window begins later than the site plans ahead."""
    TOO_MANY_CPUS = "TOO_MANY_CPUS"
    """The element never has as many CPUs."""
    TOO_LONG = "TOO_LONG"
    """The site makes no reservations of this duration."""
    VO_REFUSED = "VO_REFUSED"
    """The site makes no reservations for this VO."""
    QUOTA = "QUOTA"
    """The VO has reserved as much as it may."""
    NO_ROOM = "NO_ROOM"
    """So many CPUs are free at no start in the window for so long."""
    REFUSED_BY_SITE = "REFUSED_BY_SITE"
    """The batch system or the site's script refused the offer."""
    NOT_DECIDED = "NOT_DECIDED"
    """The site did not decide in time."""
    CANCELLED = "CANCELLED"
    """The broker does not need it."""
    CANCELLED_BY_USER = "CANCELLED_BY_USER"
    """Its user cancelled it."""
    NOT_CONFIRMED = "NOT_CONFIRMED"
    """It was not confirmed in time."""
    VANISHED = "VANISHED"
    """The batch system lists it no more, and the site did not remove it."""
    NOT_USED = "NOT_USED"
    """No pilot used it within the grace time."""
    TIME_OVER = "TIME_OVER"
    """Its duration has passed."""
    JOB_OVER = "JOB_OVER"
    """Its job has ended."""
    UNKNOWN = "UNKNOWN"
    """The site knows of no such agreement."""


class Refusal(msgspec.Struct, frozen=True):
    """A denied offer, and why."""

    code: AgreementReason
    text: str
