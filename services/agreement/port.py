"""The interfaces by which a site decides on offers and holds reservations: WS-Agreement's decision maker and resource helper."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

import msgspec

from wms.agreement.calendar import Booking
from wms.agreement.decision import Granted, ReservationRules
from wms.agreement.reasons import Refusal
from wms.agreement.terms import AgreementTerms
from wms.ids import AgreementId

Decision: TypeAlias = Granted | Refusal | None
"""A decision on an offer; None: its outcome is unknown, for example after a timeout, and it must be decided again."""


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation of this system that the batch system lists."""

    name: str
    start_at: datetime
    ends_at: datetime
    in_use: bool = False
    """Whether a job runs in the reservation."""


class Outlook(Protocol):
    """The state of a computing element in one round of decisions; each grant counts for the offers decided after it."""

    cpus: int
    """The most CPUs that one reservation can have."""

    async def begin(self, offers: Sequence[AgreementTerms], now: datetime) -> None:
        """Reserve CPUs for many offers at once, if the batch system can; `decide` then returns the grants, and tries the others.

        Raises Unavailable if the batch system does not answer; it may have made some of the reservations.
        """

    async def decide(self, terms: AgreementTerms, now: datetime) -> Decision:
        """Reserve CPUs at the earliest start in the offer's window, and return the grant or the refusal.

        If the offer's reservation already exists, it is granted as it is. Raise Unavailable if the batch system does not answer.
        """


class DecisionMaker(Protocol):
    """Decides on the offers for one computing element."""

    at_once: int
    """The most offers that one round decides on."""

    async def look(self, booked: Sequence[Booking], /) -> Outlook:
        """Return the present state of the element. `booked` are the reservations of all granted agreements there.

        Raise Unavailable if the batch system does not answer.
        """


class ResourceHelper(Protocol):
    """Holds the reservations of one computing element in its batch system."""

    def name_of(self, agreement_id: AgreementId) -> str:
        """Return the name of an agreement's reservation in the batch system, by which it is found again after a crash."""

    async def holdings(self) -> list[Holding]:
        """Return all reservations of this system that the batch system lists. Raise Unavailable if it does not answer."""

    async def release(self, names: Collection[str]) -> set[str]:
        """Remove reservations; return those that are gone, also if they never existed. One in use by a job stays.

        Raise Unavailable if the batch system does not answer.
        """


class ServedElement(msgspec.Struct, frozen=True, kw_only=True):
    """A computing element on which the service makes reservations, with its rules and what decides for it."""

    ce: str
    rules: ReservationRules
    maker: DecisionMaker
    helper: ResourceHelper | None = None
    """What holds its reservations in a batch system; None: they are in the database only."""
