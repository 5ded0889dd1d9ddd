"""A calendar in one round of decisions: each grant is seen by the offers after it, and each round begins anew."""

from services.agreement.slot_calendar import CalendarDecisions
from tests.unit.agreement.offers import NOW, at, terms
from wms.agreement.calendar import Booking
from wms.agreement.decision import Granted, ReservationRules
from wms.ids import AgreementId


async def _four() -> int:
    return 4


async def test_grants_of_a_round_are_seen_in_it_and_not_in_the_next() -> None:
    maker = CalendarDecisions(ReservationRules(), _four)
    outlook = await maker.look([])
    starts = []
    for n in range(2):
        decision = await outlook.decide(terms(agreement_id=AgreementId(f"a-{n}"), cpus=4), NOW)
        assert isinstance(decision, Granted)
        starts.append(decision.start_at)
    assert starts == [NOW, at(600)]
    again = await (await maker.look([])).decide(terms(cpus=4), NOW)
    assert isinstance(again, Granted)
    assert again.start_at == NOW


async def test_what_is_reserved_is_in_the_way() -> None:
    there = Booking(agreement_id=AgreementId("there"), cpus=3, start_at=at(-10), ends_at=at(50))
    decision = await (await CalendarDecisions(ReservationRules(), _four).look([there])).decide(terms(), NOW)
    assert isinstance(decision, Granted)
    assert decision.start_at == at(50)
