"""Decisions on offers by a calendar: the earliest start within the bounds of template and quota, or a coded reason why there is none."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from wms.agreement.calendar import Booking, SlotCalendar, Wish
from wms.agreement.quota import ReservedAmount, VoQuota, over_quota
from wms.agreement.reasons import AgreementReason, Refusal
from wms.agreement.template import AgreementTemplate
from wms.agreement.terms import AgreementTerms
from wms.ids import AgreementId


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation of an offer's CPUs."""

    start_at: datetime
    ends_at: datetime
    reservation: str = ""
    """The name by which the batch system knows the reservation; empty if it does not."""
    moved: tuple[Booking, ...] = ()
    """The flexible reservations that made room, as they are then."""


class ReservationRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a site lets be reserved of an element."""

    template: AgreementTemplate = AgreementTemplate()
    quotas: Mapping[str, VoQuota] = {}
    """The most that each VO may have reserved; `*` is for the others."""

    def refusal(
        self, terms: AgreementTerms, cpus: int, held: ReservedAmount, now: datetime
    ) -> Refusal | None:
        """Return why an offer is denied whatever is free; `cpus` is the size of the element, `held` what its VO has reserved."""
        return self.template.refusal(terms, cpus, now) or over_quota(terms, held, self.quota(terms.vo))

    def quota(self, vo: str) -> VoQuota:
        """Return what a VO may have reserved at the site."""
        return self.quotas.get(vo, self.quotas.get("*", VoQuota()))

    def wish(self, terms: AgreementTerms, now: datetime) -> Wish:
        """Return what an offer needs of a calendar."""
        return Wish(
            cpus=terms.cpus,
            duration=terms.duration,
            first=terms.first_start(now),
            last=terms.last_start(now, self.template.horizon),
        )


def decide(
    terms: AgreementTerms, calendar: SlotCalendar, rules: ReservationRules, now: datetime
) -> Granted | Refusal:
    """Grant the earliest start that the calendar has, and book it there; or deny with the reason."""
    wish = rules.wish(terms, now)
    room = calendar.room(wish)
    if room is None:
        return no_room(wish, calendar.cpus)
    for each in room.moved:
        calendar.drop(each.agreement_id)
        calendar.book(each)
    booking = wish.at(room.start_at, terms.agreement_id)
    window = (wish.first, wish.last) if terms.flexible else None
    calendar.book(msgspec.structs.replace(booking, window=window))
    return Granted(start_at=booking.start_at, ends_at=booking.ends_at, moved=room.moved)


def no_room(wish: Wish, cpus: int) -> Refusal:
    """Return the refusal of a wish for which no start is left."""
    seconds = wish.duration.total_seconds()
    text = f"{wish.cpus} of {cpus} CPUs are free for {seconds:g} s from no start between {wish.first} and {wish.last}"
    return Refusal(AgreementReason.NO_ROOM, text)


def improve(calendar: SlotCalendar, flexible: Iterable[AgreementId], now: datetime) -> list[Booking]:
    """Move flexible reservations to earlier starts that are free, and return them as they are then."""
    moved = []
    for each in flexible:
        if (booking := calendar.sooner(each, now)) is not None:
            calendar.drop(each)
            calendar.book(booking)
            moved.append(booking)
    return moved
