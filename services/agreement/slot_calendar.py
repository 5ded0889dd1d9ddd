"""Decisions by a calendar of reserved CPUs in the database, for computing elements whose batch system makes no reservations."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from services.agreement.port import Decision
from wms.agreement.calendar import Booking, OwnerBound, SlotCalendar
from wms.agreement.decision import ReservationRules, decide
from wms.agreement.terms import AgreementTerms


class CalendarOutlook:
    """The reserved CPUs of a computing element in one round of decisions; each grant is booked and counts for later offers."""

    def __init__(
        self, rules: ReservationRules, cpus: int, booked: Sequence[Booking], owners: OwnerBound | None
    ) -> None:
        self.cpus = cpus
        self._rules = rules
        self._calendar = SlotCalendar(cpus, booked, owners)

    async def begin(self, offers: Sequence[AgreementTerms], now: datetime) -> None:
        """Do nothing: `decide` finds the starts in the calendar, one offer after the other."""

    async def decide(self, terms: AgreementTerms, now: datetime) -> Decision:
        """Grant the earliest start in the offer's window, or return the refusal. Flexible reservations are moved if that makes room.

        `now` is the database's time.
        """
        return decide(terms, self._calendar, self._rules, now)


class CalendarDecisions:
    """The decision maker of a computing element whose reservations are in the database only."""

    at_once = 200

    def __init__(self, rules: ReservationRules, cpus: Callable[[], Awaitable[int]]) -> None:
        """Build a decision maker; `cpus` returns how many CPUs of the element may be reserved at a time now."""
        self._rules = rules
        self._cpus = cpus

    async def look(self, booked: Sequence[Booking], owners: OwnerBound | None = None, /) -> CalendarOutlook:
        """Return the calendar of the element with the reservations in `booked`, where `owners` bounds what one owner may hold."""
        return CalendarOutlook(self._rules, await self._cpus(), booked, owners)
