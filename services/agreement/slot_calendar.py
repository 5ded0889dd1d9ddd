"""Decisions by a calendar of an element's slots, for elements whose batch system, if any, makes no reservations."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from services.agreement.port import Decision
from wms.agreement.calendar import Booking, SlotCalendar
from wms.agreement.decision import ReservationRules, decide
from wms.agreement.terms import AgreementTerms


class CalendarOutlook:
    """A calendar in one round: what is granted is entered, and seen by the offers after it."""

    def __init__(self, rules: ReservationRules, cpus: int, booked: Sequence[Booking]) -> None:
        self.cpus = cpus
        self._rules = rules
        self._calendar = SlotCalendar(cpus, booked)

    async def decide(self, terms: AgreementTerms, now: datetime) -> Decision:
        """Grant the earliest start, perhaps by moving flexible reservations; or deny."""
        return decide(terms, self._calendar, self._rules, now)


class CalendarDecisions:
    """The decision maker of an element by its calendar; the agreements in the database are all that is held."""

    at_once = 200

    def __init__(self, rules: ReservationRules, cpus: Callable[[], Awaitable[int]]) -> None:
        """Build a decision maker; `cpus` tells how many CPUs may be reserved at a time now."""
        self._rules = rules
        self._cpus = cpus

    async def look(self, booked: Sequence[Booking], /) -> CalendarOutlook:
        """Return the calendar with everything that is reserved."""
        return CalendarOutlook(self._rules, await self._cpus(), booked)
