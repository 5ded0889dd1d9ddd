"""The ports by which a site decides on offers and holds reservations, after WS-Agreement's decision maker and resource helper."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

import msgspec

from wms.agreement.calendar import Booking
from wms.agreement.decision import Granted, ReservationRules
from wms.agreement.reasons import Refusal
from wms.agreement.terms import AgreementTerms
from wms.ids import AgreementId

Decision: TypeAlias = Granted | Refusal | None
"""None: it is not known what became of the offer; it is decided again."""


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation of this system that a batch system lists."""

    name: str
    start_at: datetime
    ends_at: datetime
    in_use: bool = False
    """Whether a job runs in it."""


class Outlook(Protocol):
    """An element as one round of decisions sees it."""

    cpus: int
    """The most CPUs that one reservation can have."""

    async def decide(self, terms: AgreementTerms, now: datetime) -> Decision:
        """Reserve at the earliest start in the window; an offer whose reservation is there already is granted as it is."""


class DecisionMaker(Protocol):
    """Decides on offers for one element."""

    at_once: int
    """The most offers of one round."""

    async def look(self, booked: Sequence[Booking], /) -> Outlook:
        """Look at the element; `booked` is what agreements have reserved. Raise Unavailable."""


class ResourceHelper(Protocol):
    """Keeps the reservations of one element in its batch system."""

    def name_of(self, agreement_id: AgreementId) -> str:
        """Return the name of the agreement's reservation, by which it is found again after a crash."""

    async def holdings(self) -> list[Holding]:
        """Return all reservations of this system that the batch system lists. Raise Unavailable."""

    async def release(self, name: str) -> bool:
        """Remove a reservation, whether or not it is there; return False if it cannot be removed while it is used. Raise Unavailable."""


class ServedElement(msgspec.Struct, frozen=True, kw_only=True):
    """A computing element on which reservations are made."""

    ce: str
    rules: ReservationRules
    maker: DecisionMaker
    helper: ResourceHelper | None = None
    """None: nothing is held outside the database."""
