"""The calendar of one computing element: which CPUs are reserved when, and the earliest time at which more are free.

A reservation starts at the earliest time in its window of starts from which its CPUs are free for its whole duration. So a short
one can start before a longer one that was reserved earlier (backfilling). If no start is left, flexible reservations are moved
within their windows. All reservations of one owner together may be bounded to a share of the CPUs (`OwnerBound`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from wms.agreement.cpu_steps import CpuSteps
from wms.ids import AgreementId

TRIED_STARTS: Final = 32
"""The most start times of a new reservation, the earliest first, for which the calendar tries to move flexible reservations."""
MOVED_AT_MOST: Final = 32
"""The most flexible reservations that may be moved to make room for one new reservation. With more in the way, that start is skipped."""


class Booking(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a calendar: `cpus` CPUs of the computing element are reserved from `start_at` until `ends_at`."""

    agreement_id: AgreementId
    cpus: int
    start_at: datetime
    ends_at: datetime
    window: tuple[datetime, datetime] | None = None
    """The earliest and the latest start to which the reservation may be moved; None: it may not be moved."""
    owner: str = ""
    """The user for whose job the CPUs are reserved; empty: unknown, and bounded by no share."""

    @property
    def duration(self) -> timedelta:
        """The length of the reservation: its end minus its start."""
        return self.ends_at - self.start_at

    def moved(self, start_at: datetime) -> "Booking":
        """Return the booking with another start and the same duration."""
        return replace(self, start_at=start_at, ends_at=start_at + self.duration)


class CpuRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for CPUs of an element for a duration; the reservation may start at any time from `first` to `last`."""

    cpus: int
    duration: timedelta
    first: datetime
    last: datetime
    """The latest start of the reservation."""
    owner: str = ""
    """The user who asks; empty: unknown, and bounded by no share."""

    def at(self, start_at: datetime, agreement_id: AgreementId) -> Booking:
        """Return the booking for these CPUs from `start_at` on, under the id of an agreement."""
        ends_at = start_at + self.duration
        return Booking(
            agreement_id=agreement_id, cpus=self.cpus, start_at=start_at, ends_at=ends_at, owner=self.owner
        )


class FreeStart(msgspec.Struct, frozen=True, kw_only=True):
    """A start at which the CPUs of a request are free, once the bookings in `moved` have the new times stated there."""

    start_at: datetime
    moved: tuple[Booking, ...] = ()


class OwnerBound(msgspec.Struct, frozen=True, kw_only=True):
    """The share of an element's CPUs that the reservations of one owner may hold at a time.

    A reservation of more CPUs is made only for an owner who has no other reservation on the element.
    """

    share: float
    lone: str = ""
    """The only owner who has asked for the element of late. The share does not bound reservations of this owner that start by `soon`."""
    soon: datetime

    def most(self, cpus: int) -> int:
        """Return how many of the `cpus` CPUs of an element the reservations of one owner may hold together at a time."""
        return int(cpus * self.share)

    def is_for(self, owner: str, start_at: datetime) -> bool:
        """Return whether the share bounds a reservation of this owner that starts at a time."""
        return bool(owner) and not (owner == self.lone and start_at <= self.soon)


class SlotCalendar:
    """The reserved CPUs of one computing element over time.

    `cpus` is the number of its CPUs. `owners` bounds what one owner may hold of them; None: nothing does.
    """

    def __init__(self, cpus: int, bookings: Iterable[Booking] = (), owners: OwnerBound | None = None) -> None:
        self.cpus = cpus
        self.owners = owners
        self._bookings: dict[AgreementId, Booking] = {}
        self._all = CpuSteps()
        self._of_owner: defaultdict[str, CpuSteps] = defaultdict(CpuSteps)
        for each in bookings:
            self.book(each)

    def __iter__(self) -> Iterator[Booking]:
        """Iterate over the bookings, in the order in which they were booked."""
        return iter(self._bookings.values())

    def book(self, booking: Booking) -> None:
        """Add a booking to the calendar, without a check that its CPUs are free."""
        self._bookings[booking.agreement_id] = booking
        self._change(booking, booking.cpus)

    def drop(self, agreement_id: AgreementId) -> Booking:
        """Remove a booking from the calendar and return it. Raise KeyError if there is none of this agreement."""
        booking = self._bookings.pop(agreement_id)
        self._change(booking, -booking.cpus)
        return booking

    def most_used(self) -> int:
        """Return the largest number of CPUs that are reserved at the same time; 0 without bookings."""
        return self._all.most()

    def earliest(self, wish: CpuRequest) -> datetime | None:
        """Return the earliest start in the wish's window from which its CPUs are free for its duration; None if there is none.

        The owner's reservations hold no more than their share then.
        """
        start = _earliest(self._all, wish, self.cpus)
        while start is not None and self.owners and self.owners.is_for(wish.owner, start):
            allowed = self._earliest_of_owner(replace(wish, first=start), self.owners.most(self.cpus))
            if allowed is None or allowed == start:
                return allowed
            start = _earliest(self._all, replace(wish, first=allowed), self.cpus)
        return start

    def _earliest_of_owner(self, wish: CpuRequest, most: int) -> datetime | None:
        """Return the earliest start in the wish's window from which its owner's reservations hold at most `most` CPUs."""
        theirs = self._of_owner[wish.owner]
        if wish.cpus > most:
            return None if theirs.times else wish.first
        return _earliest(theirs, wish, most)

    def room(self, wish: CpuRequest) -> FreeStart | None:
        """Return the earliest start for a request, with the flexible bookings to move if it has no start otherwise.

        Return None if no start is found. The calendar is unchanged.
        """
        if (start := self.earliest(wish)) is not None:
            return FreeStart(start_at=start)
        return next((room for at in self._starts(wish) if (room := self._moving_at(wish, at))), None)

    def sooner(self, agreement_id: AgreementId, now: datetime) -> Booking | None:
        """Return the flexible booking of an agreement at an earlier start that has become free; None if there is none.

        The start is not before `now`. The calendar is unchanged. Raise KeyError if the agreement has no booking.
        """
        booking = self.drop(agreement_id)
        try:
            start = self.earliest(_again(booking, now)) if booking.window else None
        finally:
            self.book(booking)
        return booking.moved(start) if start is not None and start < booking.start_at else None

    def _change(self, booking: Booking, cpus: int) -> None:
        for each in (self._all, self._of_owner[booking.owner]):
            each.change(booking.start_at, booking.ends_at, cpus)

    def _starts(self, wish: CpuRequest) -> list[datetime]:
        """Return up to `TRIED_STARTS` starts at which flexible bookings might be moved to make room, the earliest first."""
        changes = {at for at in self._all.times if wish.first < at <= wish.last}
        return sorted({wish.first, *changes})[:TRIED_STARTS]

    def _moving_at(self, wish: CpuRequest, start: datetime) -> FreeStart | None:
        """Return the room for a request at exactly this start, if all flexible bookings in the way fit at other times.

        Return None if they do not, or are more than `MOVED_AT_MOST`. The calendar is unchanged.
        """
        in_the_way = [
            each
            for each in self
            if each.window and each.start_at < start + wish.duration and each.ends_at > start
        ]
        if not in_the_way or len(in_the_way) > MOVED_AT_MOST:
            return None
        for each in in_the_way:
            self.drop(each.agreement_id)
        moved: list[Booking] = []
        try:
            if self.earliest(replace(wish, first=start, last=start)) is None:
                return None
            return self._replaced(wish.at(start, _ASIDE), in_the_way, moved, wish.first)
        finally:
            for each in moved:
                self.drop(each.agreement_id)
            for each in in_the_way:
                self.book(each)

    def _replaced(
        self, booking: Booking, others: Iterable[Booking], moved: list[Booking], now: datetime
    ) -> FreeStart | None:
        """Book `booking`, then each of `others` at the earliest free start in its window. All that are booked are appended to `moved`.

        Return the room, or None if one of them does not fit.
        """
        self.book(booking)
        moved.append(booking)
        for each in sorted(others, key=_last_start):
            start = self.earliest(_again(each, now))
            if start is None:
                return None
            there = each.moved(start)
            self.book(there)
            moved.append(there)
        known = {each.agreement_id: each.start_at for each in others}
        changed = (each for each in moved[1:] if each.start_at != known[each.agreement_id])
        return FreeStart(start_at=booking.start_at, moved=tuple(changed))


_ASIDE: Final = AgreementId("")
"""The id of a booking that is made only to try whether it fits, and is dropped again."""


def _earliest(steps: CpuSteps, wish: CpuRequest, most: int) -> datetime | None:
    return steps.earliest(wish.cpus, wish.duration, wish.first, wish.last, most)


def _again(booking: Booking, now: datetime) -> CpuRequest:
    """Return the request by which a flexible booking is booked anew: within its window, and not before `now`."""
    first, last = booking.window or (booking.start_at, booking.start_at)
    return CpuRequest(
        cpus=booking.cpus,
        duration=booking.duration,
        first=max(first, now),
        last=last,
        owner=booking.owner,
    )


def _last_start(booking: Booking) -> datetime:
    return (booking.window or (booking.start_at, booking.start_at))[1]
