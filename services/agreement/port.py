"""The interfaces by which a site decides on offers and holds reservations: WS-Agreement's decision maker and resource helper."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

import msgspec

from wms.agreement.calendar import Booking, OwnerBound
from wms.agreement.decision import Granted, ReservationRules
from wms.agreement.reasons import Refusal
from wms.agreement.terms import AgreementTerms
from wms.ids import AgreementId

Decision: TypeAlias = Granted | Refusal | None
"""A decision on an offer; None: its outcome is unknown, for example after a timeout. The offer is then decided on again."""


class BatchReservation(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation that the batch system lists, and that belongs to this system by its name."""

    name: str
    start_at: datetime
    ends_at: datetime
    in_use: bool = False
    """Whether at least one job runs in the reservation."""


class FreeCpus(Protocol):
    """The free CPUs of a computing element in one round of decisions. Each grant reduces them for the offers decided after it."""

    cpus: int
    """The most CPUs that one reservation on the element can have."""

    async def begin(self, offers: Sequence[AgreementTerms], now: datetime) -> None:
        """Make the reservations of many offers in one call, if the batch system can; `now` is the database's time.

        `decide`, called for each offer after it, returns the grants and tries the others. Raise Unavailable if the batch system
        does not answer; it may have made some of the reservations.
        """

    async def decide(self, terms: AgreementTerms, now: datetime) -> Decision:
        """Reserve CPUs at the earliest start in the offer's window, and return the grant or the refusal; `now` is the database's time.

        If the offer's reservation already exists, it is granted as it is. None: the outcome is unknown. Raise Unavailable if
        the batch system does not answer.
        """


class DecisionMaker(Protocol):
    """Decides on the offers for one computing element. It is the plugin for a kind of batch system."""

    at_once: int
    """The most offers that one round decides on."""

    async def look(self, booked: Sequence[Booking], owners: OwnerBound | None = None, /) -> FreeCpus:
        """Return the present free CPUs of the element. `booked` are the reservations of all granted agreements there.

        `owners` bounds what one owner's reservations may hold of the CPUs; None: nothing does. Raise Unavailable if the batch
        system does not answer.
        """


class ResourceHelper(Protocol):
    """Names, lists and releases the reservations of one computing element in its batch system."""

    def name_of(self, agreement_id: AgreementId) -> str:
        """Return the name of an agreement's reservation in the batch system, by which it is found again after a crash."""

    async def holdings(self) -> list[BatchReservation]:
        """Return all reservations of this system that the batch system lists. Raise Unavailable if it does not answer."""

    async def release(self, names: Collection[str]) -> set[str]:
        """Remove the reservations with these names; return the names of those that are gone, also if they never existed.

        One in use by a job stays. Raise Unavailable if the batch system does not answer.
        """


class ServedElement(msgspec.Struct, frozen=True, kw_only=True):
    """A computing element on which the service makes reservations: its name, its rules, and its decision maker (`maker`)."""

    ce: str
    rules: ReservationRules
    maker: DecisionMaker
    helper: ResourceHelper | None = None
    """The object that lists and releases its reservations in a batch system; None: they are in the database only."""
