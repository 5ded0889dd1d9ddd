"""One agreement as it stands, and what becomes of it as time passes."""

from datetime import datetime, timedelta

import msgspec

from wms.agreement.calendar import Booking
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import AgreementEvent, AgreementState
from wms.agreement.terms import AgreementTerms
from wms.ids import AgreementId


class Agreement(AgreementTerms, frozen=True, kw_only=True):
    """An agreement, as it is stored."""

    state: AgreementState
    start_at: datetime | None
    ends_at: datetime | None
    reservation: str
    """The name by which the batch system knows the reservation; empty if it does not."""
    is_held: bool
    """Whether the batch system may hold a reservation."""
    expires_at: datetime
    """When an undecided offer or an unconfirmed reservation is over."""
    used_at: datetime | None
    """When it was first seen that the reservation is used."""
    tries: int
    """How often a decision was begun."""
    code: str
    text: str
    created_at: datetime
    changed_at: datetime

    def booking(self, now: datetime, horizon: timedelta) -> Booking:
        """Return the reserved CPUs of a granted agreement; an unconfirmed flexible one may be moved within its window."""
        assert self.start_at is not None
        assert self.ends_at is not None
        movable = self.flexible and self.state is AgreementState.TEMPORARY
        return Booking(
            agreement_id=self.agreement_id,
            cpus=self.cpus,
            start_at=self.start_at,
            ends_at=self.ends_at,
            window=(self.first_start(now), self.last_start(self.created_at, horizon)) if movable else None,
        )


class AgreementMark(msgspec.Struct, frozen=True, kw_only=True):
    """An event of one agreement, with its reason; values that are None stay as they were."""

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
    """Return what has become of an agreement by this time of the database, None if it goes on.

    A confirmed one that nobody has used is released `grace` after its start; one whose job has ended is not needed any more.
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
