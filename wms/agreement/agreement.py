"""One agreement as stored in the database, and the events that happen to it by time alone."""

from datetime import datetime, timedelta

import msgspec

from wms.agreement.calendar import Booking
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import AgreementEvent, AgreementState
from wms.agreement.terms import AgreementTerms
from wms.ids import AgreementId


class Agreement(AgreementTerms, frozen=True, kw_only=True):
    """An agreement by which a site reserves CPUs for a job, as stored in the database.

    Its terms are those that the resource broker offered. `start_at` and `ends_at` are None until it is granted. `code` and `text`
    say why it is in its state.
    """

    state: AgreementState
    start_at: datetime | None
    ends_at: datetime | None
    reservation: str
    """The name of the reservation in the batch system; empty if it is not held there."""
    is_held: bool
    """Whether the batch system may hold a reservation for it, which must be removed when the agreement is over."""
    expires_at: datetime
    """The time at which an undecided offer is denied, or a reservation that is not confirmed expires."""
    used_at: datetime | None
    """When the service first saw that a job uses the reservation; None: not yet."""
    tries: int
    """How many times the service has begun to decide on the offer. It is over 1 only if earlier decisions came to no end."""
    code: str
    text: str
    created_at: datetime
    changed_at: datetime

    def booking(self, now: datetime, horizon: timedelta) -> Booking:
        """Return the entry of this agreement for the calendar of its computing element; the agreement must have been granted.

        If it is flexible and not confirmed yet, the entry has the window of starts to which it may be moved: from `now` on, and
        at the latest `horizon` after the creation of the agreement.
        """
        assert self.start_at is not None
        assert self.ends_at is not None
        movable = self.flexible and self.state is AgreementState.TEMPORARY
        return Booking(
            agreement_id=self.agreement_id,
            cpus=self.cpus,
            start_at=self.start_at,
            ends_at=self.ends_at,
            owner=self.owner,
            window=(self.first_start(now), self.last_start(self.created_at, horizon)) if movable else None,
        )


class AgreementMark(msgspec.Struct, frozen=True, kw_only=True):
    """An event of one agreement that is to be stored, with its reason. Fields that are None leave the stored values unchanged."""

    agreement_id: AgreementId
    event: AgreementEvent
    code: AgreementReason
    text: str = ""
    start_at: datetime | None = None
    ends_at: datetime | None = None
    reservation: str | None = None
    expires_at: datetime | None = None


def overdue(
    agreement: Agreement, now: datetime, grace: timedelta, *, job_is_over: bool
) -> AgreementMark | None:
    """Return the event that happens to an agreement by time alone, at the database's time `now`; None if there is none.

    An undecided offer or an unconfirmed reservation expires. A confirmed one ends with its time or its job (`job_is_over`). If
    nobody has used it `grace` after its start, it ends as a no-show.
    """
    match agreement.state:
        case AgreementState.REQUESTED if agreement.expires_at <= now:
            text = "the site did not decide in time"
            return _mark(agreement, AgreementEvent.DENY, AgreementReason.NOT_DECIDED, text)
        case AgreementState.TEMPORARY if agreement.expires_at <= now:
            text = "it was not confirmed in time"
            return _mark(agreement, AgreementEvent.EXPIRE, AgreementReason.NOT_CONFIRMED, text)
        case AgreementState.CONFIRMED:
            return _overdue_confirmed(agreement, now, grace, job_is_over=job_is_over)
    return None


def _overdue_confirmed(
    agreement: Agreement, now: datetime, grace: timedelta, *, job_is_over: bool
) -> AgreementMark | None:
    assert agreement.start_at is not None
    assert agreement.ends_at is not None
    if agreement.ends_at <= now:
        return _mark(agreement, AgreementEvent.END, AgreementReason.TIME_OVER, "its time is over")
    if job_is_over:
        return _mark(agreement, AgreementEvent.END, AgreementReason.JOB_OVER, "its job has ended")
    if agreement.used_at is None and agreement.start_at + grace <= now:
        text = f"nobody used it within {grace.total_seconds():g} s of its start"
        return _mark(agreement, AgreementEvent.MISS, AgreementReason.NOT_USED, text)
    return None


def _mark(agreement: Agreement, event: AgreementEvent, code: AgreementReason, text: str) -> AgreementMark:
    return AgreementMark(agreement_id=agreement.agreement_id, event=event, code=code, text=text)
