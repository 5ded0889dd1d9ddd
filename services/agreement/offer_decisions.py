"""Decides on the offers for one computing element: one instance at a time, in steps that a crash may interrupt anywhere.

First the instance stores what it will ask of the batch system. Then it asks, and stores the outcome. After a crash in between,
the next round finds the reservation in the batch system by its name. After `MOST_TRIES` rounds without an outcome the offer is
denied, and a reservation that may exist is released.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import structlog

from services.agreement.port import Decision, FreeCpus, ServedElement
from wms import faultpoint
from wms.agreement.agreement import Agreement, AgreementMark
from wms.agreement.calendar import Booking, OwnerBound, SlotCalendar
from wms.agreement.decision import Granted, improve
from wms.agreement.quota import ReservedAmount
from wms.agreement.reasons import AgreementReason, Refusal
from wms.agreement.state import AgreementEvent, AgreementState
from wms.db import agreement
from wms.db.database import Database, Transaction
from wms.errors import Unavailable
from wms.ids import AgreementId, CeId

log = structlog.get_logger()

MOST_TRIES: Final = 5
"""How many rounds may begin to decide on an offer without coming to an end. After that the offer is denied."""
LATELY_SECONDS: Final = 3_600.0
"""Seconds after an owner's last offer for which the shares of others at the element stay bounded."""
NO_START: Final = (AgreementReason.NO_ROOM, AgreementReason.OWNER_SHARE)

Decisions = dict[AgreementId, Granted | Refusal]


class OfferDecisions:
    """Decides on the offers for one computing element, on behalf of one instance of the agreement service.

    One instance at a time has the turn to decide for an element.
    """

    def __init__(
        self, db: Database, site: str, element: ServedElement, holder: str, turn_seconds: float
    ) -> None:
        """Build a decider; `holder` names the service's instance. It loses its turn to decide after `turn_seconds` of silence."""
        self._db = db
        self._element = element
        self._place = CeId(site, element.ce)
        self._holder = holder
        self._turn_seconds = turn_seconds
        self.decided = 0

    async def round(self) -> bool:
        """Decide on the oldest offers of the element and store the decisions; return whether more may wait.

        While another instance has the turn to decide, the call does nothing and returns False. Raise Unavailable if the batch
        system cannot be read; the broker sends no more offers then, until the element is told again.
        """
        offers, booked, owners = await self._waiting()
        if not offers:
            return False
        outlook = await self._look(booked, owners)
        intended, now = await self._intend(offers, outlook.cpus)
        faultpoint.reach("agreement.after_intent")
        await outlook.begin(intended, now)
        decisions: Decisions = {}
        for each in intended:
            decision = await self._decide(outlook, each, now)
            if decision is not None:
                decisions[each.agreement_id] = decision
        await self._record(intended, decisions)
        faultpoint.reach("agreement.after_decision")
        self.decided += len(decisions)
        # Those that were denied at once left room for others in the next round.
        return bool(decisions) or len(intended) < len(offers)

    async def _look(self, booked: Sequence[Booking], owners: OwnerBound | None) -> FreeCpus:
        try:
            return await self._element.maker.look(booked, owners)
        except Unavailable:
            async with self._db.transaction() as tx:
                await agreement.withdraw_element(tx, self._place)
            raise

    async def improve(self) -> None:
        """Move unconfirmed flexible reservations to earlier starts that have become free, and store the new times.

        Reservations that a batch system holds are not moved.
        """
        flexible, booked, owners, now = await self._flexible()
        if not flexible or self._is_outside:
            return
        outlook = await self._element.maker.look(booked)
        calendar = SlotCalendar(outlook.cpus, booked, owners)
        moved = improve(calendar, [each.agreement_id for each in flexible], now)
        async with self._db.transaction() as tx:
            if await agreement.keep_turn(tx, self._place, self._holder):
                await self._move(tx, {each.agreement_id: each for each in moved})

    async def _flexible(self) -> tuple[list[Booking], list[Booking], OwnerBound | None, datetime]:
        """Return the reservations that may be moved, all reservations, the bound of each owner, and the database's time.

        The first list is empty while another instance has the turn to decide.
        """
        async with self._db.transaction() as tx:
            now = await tx.now()
            booked = await self._booked(tx, now)
            flexible = [each for each in booked if each.window]
            if not flexible or not await self._take_turn(tx):
                return [], booked, None, now
            return flexible, booked, await self._owners(tx, now), now

    # --- steps ------------------------------------------------------------------------------------

    async def _waiting(self) -> tuple[list[Agreement], list[Booking], OwnerBound | None]:
        """Return the oldest undecided offers, all reservations, and the bound of each owner.

        Both lists are empty while another instance has the turn to decide.
        """
        async with self._db.transaction() as tx:
            offers = await agreement.requested(tx, self._place, self._element.maker.at_once)
            if not offers or not await self._take_turn(tx):
                return [], [], None
            now = await tx.now()
            return offers, await self._booked(tx, now), await self._owners(tx, now)

    async def _owners(self, tx: Transaction, now: datetime) -> OwnerBound | None:
        asking = await agreement.askers(tx, self._place, LATELY_SECONDS, 2)
        return self._element.rules.owners(asking[0] if len(asking) == 1 else "", now)

    async def _booked(self, tx: Transaction, now: datetime) -> list[Booking]:
        horizon = self._element.rules.template.horizon
        return [each.booking(now, horizon) for each in await agreement.granted(tx, self._place)]

    async def _intend(self, offers: Sequence[Agreement], cpus: int) -> tuple[list[Agreement], datetime]:
        """Deny the offers that the template or a quota refuses, or that were tried too often. Store for the others what will be asked.

        `cpus` is the number of CPUs of the element. Return the others, and the database's time; no offers if the turn to decide
        was lost.
        """
        async with self._db.transaction() as tx:
            now = await tx.now()
            if not await agreement.keep_turn(tx, self._place, self._holder):
                return [], now
            held = await agreement.reserved(tx, self._place.site)
            denied = self._refused(offers, cpus, held, now)
            await agreement.move(tx, [_denial(id_, refusal) for id_, refusal in denied.items()])
            rest = [each for each in offers if each.agreement_id not in denied]
            await agreement.intend(
                tx, {each.agreement_id: self._name(each) for each in rest}, is_held=self._is_outside
            )
        return rest, now

    def _refused(
        self, offers: Sequence[Agreement], cpus: int, held: Mapping[str, ReservedAmount], now: datetime
    ) -> dict[AgreementId, Refusal]:
        refused = {}
        amounts = dict(held)
        for each in offers:
            amount = amounts.get(each.vo, ReservedAmount())
            refusal = self._element.rules.refusal(each, cpus, amount, now)
            if each.tries >= MOST_TRIES:
                text = f"the decision was begun {each.tries} times, and came to no end"
                refusal = Refusal(AgreementReason.NOT_DECIDED, text)
            if refusal is not None:
                refused[each.agreement_id] = refusal
            else:
                amounts[each.vo] = amount.plus(each.cpus, each.duration_seconds, each.owner)
        return refused

    async def _decide(self, outlook: FreeCpus, offer: Agreement, now: datetime) -> Decision:
        try:
            decision = await outlook.decide(offer, now)
        except Unavailable as error:
            log.warning("not decided", agreement=offer.agreement_id, error=str(error))
            return None
        faultpoint.reach("agreement.after_reserve")
        return decision

    async def _record(self, offers: Sequence[Agreement], decisions: Decisions) -> None:
        """Store the decisions on these offers.

        Nothing is stored if the turn to decide was lost, or if a reservation that was to be moved is confirmed or over. The
        next round then decides again.
        """
        moved = _moved(decisions)
        async with self._db.transaction() as tx:
            if not decisions or not await agreement.keep_turn(tx, self._place, self._holder):
                return
            there = await agreement.lock(tx, decisions.keys() | moved.keys())
            if any(
                there[each].state is not AgreementState.TEMPORARY for each in moved.keys() - decisions.keys()
            ):
                log.info("decided again", reason="a reservation that made room was confirmed or cancelled")
                return
            now = await tx.now()
            decided = [each for each in offers if each.agreement_id in decisions]
            marks = [self._mark(each, decisions[each.agreement_id], moved, now) for each in decided]
            await agreement.move(tx, marks)
            await self._move(tx, {id_: each for id_, each in moved.items() if id_ not in decisions})
            await agreement.released(tx, [id_ for id_, each in decisions.items() if _holds_nothing(each)])

    def _mark(
        self,
        offer: Agreement,
        decision: Granted | Refusal,
        moved: Mapping[AgreementId, Booking],
        now: datetime,
    ) -> AgreementMark:
        if isinstance(decision, Refusal):
            return _denial(offer.agreement_id, decision)
        there = moved.get(offer.agreement_id)
        return AgreementMark(
            agreement_id=offer.agreement_id,
            event=AgreementEvent.GRANT,
            code=AgreementReason.GRANTED,
            start_at=there.start_at if there else decision.start_at,
            ends_at=there.ends_at if there else decision.ends_at,
            reservation=decision.reservation,
            expires_at=now + self._element.rules.template.lifetime(offer),
        )

    async def _move(self, tx: Transaction, moved: Mapping[AgreementId, Booking]) -> None:
        marks = [
            AgreementMark(
                agreement_id=id_,
                event=AgreementEvent.MOVE,
                code=AgreementReason.MOVED,
                start_at=each.start_at,
                ends_at=each.ends_at,
            )
            for id_, each in moved.items()
        ]
        await agreement.move(tx, marks)

    async def _take_turn(self, tx: Transaction) -> bool:
        return await agreement.take_turn(tx, self._place, self._holder, self._turn_seconds)

    @property
    def _is_outside(self) -> bool:
        """Whether reservations are held in a batch system or by a site's program, and not in the database alone."""
        return self._element.helper is not None

    def _name(self, offer: Agreement) -> str:
        return self._element.helper.name_of(offer.agreement_id) if self._element.helper else ""


def _moved(decisions: Mapping[AgreementId, Granted | Refusal]) -> dict[AgreementId, Booking]:
    """Return the reservations that these decisions moved to make room, by agreement, with their final times."""
    return {
        each.agreement_id: each
        for decision in decisions.values()
        if isinstance(decision, Granted)
        for each in decision.moved
    }


def _denial(agreement_id: AgreementId, refusal: Refusal) -> AgreementMark:
    return AgreementMark(
        agreement_id=agreement_id, event=AgreementEvent.DENY, code=refusal.code, text=refusal.text
    )


def _holds_nothing(decision: Granted | Refusal) -> bool:
    """Return whether it is certain that the batch system holds no reservation for this decision."""
    return isinstance(decision, Refusal) and decision.code in NO_START
