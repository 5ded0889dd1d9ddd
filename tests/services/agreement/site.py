"""The agreement service of one site over a world's database: its handlers and loops, called one by one."""

from typing import Any

import msgspec

from services.agreement.agreement_upkeep import AgreementUpkeep, Reconciliation
from services.agreement.config import AgreementSettings
from services.agreement.offer_decisions import OfferDecisions
from services.agreement.offers import AgreementOffers
from services.agreement.port import DecisionMaker, ResourceHelper, ServedElement
from services.agreement.slot_calendar import CalendarDecisions
from tests.services.world import World
from wms.agreement.agreement import Agreement
from wms.agreement.decision import ReservationRules
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import AgreementState
from wms.agreement.terms import AgreementTerms
from wms.bus.delivery import Delivery
from wms.db import agreement
from wms.ids import AgreementId
from wms.messages.agreements import DECISIONS_TOPIC, AgreementDecided, Cancel, Confirm, Reserve, ToSite


class Site:
    """The service of site A with one element, `ce`."""

    def __init__(
        self,
        world: World,
        *,
        cpus: int = 4,
        rules: ReservationRules | None = None,
        maker: DecisionMaker | None = None,
        helper: ResourceHelper | None = None,
    ) -> None:
        async def all_cpus() -> int:
            return cpus

        self.world = world
        rules = rules or ReservationRules()
        self.element = ServedElement(
            ce="ce", rules=rules, maker=maker or CalendarDecisions(rules, all_cpus), helper=helper
        )
        self.woken = 0
        self.offers = AgreementOffers("A", {"ce": self._wake})
        self.upkeep = AgreementUpkeep(world.db, AgreementSettings(site="A"), [self.element])
        self.reconciliation = Reconciliation(world.db, "A", self.element, self.upkeep)
        self.deciding = self.decider("one")

    def _wake(self) -> None:
        self.woken += 1

    def decider(self, holder: str) -> OfferDecisions:
        return OfferDecisions(self.world.db, "A", self.element, holder, 30.0)

    async def send(self, *messages: ToSite) -> None:
        async with self.world.db.transaction() as tx:
            await self.offers.handle(tx, [Delivery(None, each) for each in messages])

    async def reserve(self, *offers: AgreementTerms) -> dict[str, AgreementState]:
        """Send offers, decide on them, and return what the broker was told."""
        await self.send(*(reserve(each) for each in offers))
        await self.decide()
        return self.told()

    async def decide(self) -> None:
        await self.upkeep.tell()
        while await self.deciding.round():
            pass

    async def confirm(self, *names: str) -> dict[str, AgreementState]:
        await self.send(*(Confirm(agreement_id=AgreementId(each), site="A") for each in names))
        return self.told()

    async def cancel(self, *names: str, **more: Any) -> dict[str, AgreementState]:
        await self.send(*(Cancel(agreement_id=AgreementId(each), site="A", **more) for each in names))
        return self.told()

    def decisions(self) -> list[AgreementDecided]:
        """Return, once, what the broker was told."""
        return [msgspec.json.decode(each, type=AgreementDecided) for each in self.world.take(DECISIONS_TOPIC)]

    def told(self) -> dict[str, AgreementState]:
        return {each.agreement_id: each.state for each in self.decisions()}

    def why(self) -> dict[str, AgreementReason]:
        return {each.agreement_id: each.code for each in self.decisions()}

    async def all(self) -> dict[AgreementId, Agreement]:
        rows = await self.world.sql("select agreement_id from agreement")
        async with self.world.db.transaction() as tx:
            return await agreement.read(tx, [row["agreement_id"] for row in rows])


def reserve(offer: AgreementTerms) -> Reserve:
    return Reserve(**msgspec.structs.asdict(offer))
