"""Why an agreement is in its state: coded reasons. Codes never change their meaning."""

from enum import StrEnum

import msgspec


class AgreementReason(StrEnum):
    """The code that says why an agreement is in its state."""

    GRANTED = "GRANTED"
    """The site reserved the CPUs, at the earliest start in the window of the offer."""
    MOVED = "MOVED"
    """The site moved a flexible reservation to another start within its window."""
    CONFIRMED = "CONFIRMED"
    """The resource broker confirmed the reservation, since it places the job there."""
    INVALID_OFFER = "INVALID_OFFER"
    """The offer names a job that does not exist, or is not of the offer's owner, group and VO."""
    NO_RESERVATIONS = "NO_RESERVATIONS"
    """The site makes no reservations on this computing element."""
    WINDOW_REVERSED = "WINDOW_REVERSED"
    """The offer's latest start is before its earliest."""
    WINDOW_OVER = "WINDOW_OVER"
    """The offer's latest start has passed."""
    BEYOND_HORIZON = "BEYOND_HORIZON"
    """The offer's earliest start is further ahead than the site makes reservations."""
    TOO_MANY_CPUS = "TOO_MANY_CPUS"
    """The offer asks for more CPUs than the computing element has, or than the site's template allows."""
    TOO_LONG = "TOO_LONG"
    """The site makes no reservations of the offer's duration: it is too long, or too short."""
    VO_REFUSED = "VO_REFUSED"
    """The site makes no reservations for this VO."""
    QUOTA = "QUOTA"
    """The reservation would exceed the VO's quota at the site."""
    OWNER_QUOTA = "OWNER_QUOTA"
    """The reservation would exceed what one user of the VO may have reserved at the site."""
    OWNER_SHARE = "OWNER_SHARE"
    """The reservations of one user would hold more of the computing element's CPUs at a time than one user may."""
    NO_ROOM = "NO_ROOM"
    """At no start in the window are the requested CPUs free for the whole duration."""
    REFUSED_BY_SITE = "REFUSED_BY_SITE"
    """The batch system, or the script by which the site decides, refused the offer."""
    NOT_DECIDED = "NOT_DECIDED"
    """The site did not decide on the offer in time."""
    CANCELLED = "CANCELLED"
    """The resource broker cancelled the agreement, since the job does not need it."""
    CANCELLED_BY_USER = "CANCELLED_BY_USER"
    """The job's user cancelled the agreement."""
    NOT_CONFIRMED = "NOT_CONFIRMED"
    """The resource broker did not confirm the reservation in time."""
    VANISHED = "VANISHED"
    """The batch system no longer lists the reservation, though the site did not remove it."""
    NOT_USED = "NOT_USED"
    """No job used the reservation within the grace time after its start."""
    TIME_OVER = "TIME_OVER"
    """The reserved time has passed."""
    JOB_OVER = "JOB_OVER"
    """The job that the CPUs were reserved for has ended."""
    UNKNOWN = "UNKNOWN"
    """The site knows no agreement of this id."""


class Refusal(msgspec.Struct, frozen=True):
    """Why an offer is denied: a code, and a text for users that explains it."""

    code: AgreementReason
    text: str
