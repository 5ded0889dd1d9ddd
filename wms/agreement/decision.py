"""Decides on offers to reserve CPUs: the earliest start that template, quota and calendar allow, or a coded refusal."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from wms.agreement.calendar import Booking, CpuRequest, OwnerBound, SlotCalendar
from wms.agreement.quota import ReservedAmount, VoQuota, over_quota
from wms.agreement.reasons import AgreementReason, Refusal
from wms.agreement.template import AgreementTemplate
from wms.agreement.terms import AgreementTerms
from wms.ids import AgreementId

SOON: Final = timedelta(seconds=60)
"""A reservation that starts so soon takes CPUs that would be idle otherwise, and keeps none for later."""
OWNER_REMEDY: Final = (
    "wait until some are over, cancel some (`wms reservations`), or ask the site for a larger `owner_share`"
)


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """A granted offer: its CPUs are reserved from `start_at` until `ends_at`."""

    start_at: datetime
    ends_at: datetime
    reservation: str = ""
    """The name of the reservation in the batch system; empty if it is not held there."""
    moved: tuple[Booking, ...] = ()
    """Flexible reservations that were moved to make room, with their new times."""


class ReservationRules(msgspec.Struct, frozen=True, kw_only=True):
    """A site's rules for reservations on one computing element: the template (bounds of each offer), quotas of VOs, shares of owners."""

    template: AgreementTemplate = AgreementTemplate()
    quotas: Mapping[str, VoQuota] = {}
    """The most that each VO may have reserved at the site, by VO name; `*` is for all other VOs."""
    owner_share: float = 1.0
    """The share of the element's CPUs that one owner's reservations may hold at a time, while others ask for it; 1: all."""

    def owners(self, lone: str, now: datetime) -> OwnerBound | None:
        """Return the bound of each owner at the time `now`; None if one owner may hold all CPUs.

        `lone` is the only owner who has asked for the element of late; empty if there are others.
        """
        if self.owner_share >= 1.0:
            return None
        return OwnerBound(share=self.owner_share, lone=lone, soon=now + SOON)

    def refusal(
        self, terms: AgreementTerms, cpus: int, held: ReservedAmount, now: datetime
    ) -> Refusal | None:
        """Return why the template or a quota forbids an offer, even if CPUs are free; None if neither does.

        `cpus` is the number of CPUs of the computing element. `held` is what the offer's VO has already reserved at the site.
        `now` is the database's time.
        """
        return self.template.refusal(terms, cpus, now) or over_quota(terms, held, self.quota(terms.vo))

    def quota(self, vo: str) -> VoQuota:
        """Return the most that a VO may have reserved at the site: its own quota, else that of `*`, else the default."""
        return self.quotas.get(vo, self.quotas.get("*", VoQuota()))

    def wish(self, terms: AgreementTerms, now: datetime) -> CpuRequest:
        """Return an offer's CPUs, duration and window of starts at the time `now`, in the form that a calendar takes."""
        return CpuRequest(
            cpus=terms.cpus,
            duration=terms.duration,
            first=terms.first_start(now),
            last=terms.last_start(now, self.template.horizon),
            owner=terms.owner,
        )


def decide(
    terms: AgreementTerms, calendar: SlotCalendar, rules: ReservationRules, now: datetime
) -> Granted | Refusal:
    """Grant an offer the earliest start that the calendar has, or refuse it if there is none; `now` is the database's time.

    A grant is booked in `calendar`, and flexible reservations that it moves are booked there at their new times. The template
    and quotas are not checked.
    """
    wish = rules.wish(terms, now)
    room = calendar.room(wish)
    if room is None:
        return no_room(wish, calendar)
    for each in room.moved:
        calendar.drop(each.agreement_id)
        calendar.book(each)
    booking = wish.at(room.start_at, terms.agreement_id)
    window = (wish.first, wish.last) if terms.flexible else None
    calendar.book(msgspec.structs.replace(booking, window=window))
    return Granted(start_at=booking.start_at, ends_at=booking.ends_at, moved=room.moved)


def no_room(wish: CpuRequest, calendar: SlotCalendar) -> Refusal:
    """Return the refusal of a request for which the calendar has no start: it is full, or its owner would hold more than a share."""
    seconds = wish.duration.total_seconds()
    of_anybody = msgspec.structs.replace(wish, owner="")
    if calendar.owners and calendar.earliest(wish) is None and calendar.earliest(of_anybody) is not None:
        most = calendar.owners.most(calendar.cpus)
        text = f"{wish.owner} may have {most} of {calendar.cpus} CPUs reserved at a time, or one reservation of more: {OWNER_REMEDY}"
        return Refusal(AgreementReason.OWNER_SHARE, text)
    text = f"{wish.cpus} of {calendar.cpus} CPUs are free for {seconds:g} s from no start between {wish.first} and {wish.last}"
    return Refusal(AgreementReason.NO_ROOM, text)


def improve(calendar: SlotCalendar, flexible: Iterable[AgreementId], now: datetime) -> list[Booking]:
    """Move flexible reservations to earlier starts that have become free; return those moved, with their new times.

    `flexible` are the agreements to try, in this order. The calendar is changed in place. No start is before `now`.
    """
    moved = []
    for each in flexible:
        if (booking := calendar.sooner(each, now)) is not None:
            calendar.drop(each)
            calendar.book(booking)
            moved.append(booking)
    return moved
