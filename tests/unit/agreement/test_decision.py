"""Decisions by a calendar: grants, refusals, and what is booked."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.agreement.offers import NOW, at, terms
from wms.agreement.calendar import SlotCalendar
from wms.agreement.decision import Granted, ReservationRules, decide
from wms.agreement.quota import VoQuota, reserved
from wms.agreement.reasons import AgreementReason, Refusal
from wms.agreement.template import AgreementTemplate
from wms.ids import AgreementId

RULES = ReservationRules(
    template=AgreementTemplate(horizon_seconds=3_600), quotas={"lhcb": VoQuota(cpus=6), "*": VoQuota(cpus=1)}
)
SHARED = ReservationRules(owner_share=0.5)


def test_the_earliest_start_is_granted_and_booked() -> None:
    calendar = SlotCalendar(4)
    for n, start in enumerate([0, 0, 600, 600, 1_200]):
        offer = terms(agreement_id=AgreementId(f"a-{n}"))
        decision = decide(offer, calendar, RULES, NOW)
        assert isinstance(decision, Granted)
        assert (decision.start_at, decision.ends_at) == (at(start), at(start + 600))


def test_without_a_free_start_in_the_window_it_is_denied_and_nothing_is_booked() -> None:
    calendar = SlotCalendar(2)
    decide(terms(), calendar, RULES, NOW)
    decision = decide(terms(agreement_id=AgreementId("a-2"), latest_start=at(599)), calendar, RULES, NOW)
    assert isinstance(decision, Refusal)
    assert decision.code is AgreementReason.NO_ROOM
    assert len(list(calendar)) == 1


def test_beyond_the_share_of_its_owner_an_offer_is_denied_with_the_remedy() -> None:
    calendar = SlotCalendar(4, owners=SHARED.owners("", NOW))
    for n, code in enumerate([None, AgreementReason.OWNER_SHARE]):
        offer = terms(agreement_id=AgreementId(f"a-{n}"), latest_start=at(10))
        decision = decide(offer, calendar, SHARED, NOW)
        assert (decision.code if isinstance(decision, Refusal) else None) is code
    assert isinstance(decision, Refusal)
    assert "alice may have 2 of 4 CPUs reserved at a time" in decision.text
    assert "owner_share" in decision.text
    other = decide(terms(owner="bob", latest_start=at(10)), calendar, SHARED, NOW)
    assert isinstance(other, Granted)
    full = decide(terms(owner="carol", latest_start=at(10)), calendar, SHARED, NOW)
    assert isinstance(full, Refusal)
    assert full.code is AgreementReason.NO_ROOM


def test_who_alone_asks_may_have_all_that_is_free_now() -> None:
    calendar = SlotCalendar(4, owners=SHARED.owners("alice", NOW))
    decisions = [decide(terms(agreement_id=AgreementId(f"a-{n}")), calendar, SHARED, NOW) for n in range(4)]
    starts = [each.start_at for each in decisions if isinstance(each, Granted)]
    assert starts == [NOW, NOW, at(600), at(1_200)]


def test_a_share_of_all_bounds_nobody() -> None:
    assert RULES.owners("", NOW) is None


def test_flexible_ones_are_moved_and_told() -> None:
    calendar = SlotCalendar(2)
    decide(terms(agreement_id=AgreementId("flexible"), flexible=True), calendar, RULES, NOW)
    decision = decide(terms(latest_start=at(10)), calendar, RULES, NOW)
    assert isinstance(decision, Granted)
    assert [(each.agreement_id, each.start_at) for each in decision.moved] == [("flexible", at(600))]
    assert calendar.most_used() == 2


def test_template_and_quota_refuse_before_any_calendar_is_read() -> None:
    held = reserved([(5, 60.0)])
    too_many = RULES.refusal(terms(), 1, held, NOW)
    over = RULES.refusal(terms(), 64, held, NOW)
    assert too_many is not None
    assert over is not None
    assert (too_many.code, over.code) == (AgreementReason.TOO_MANY_CPUS, AgreementReason.QUOTA)
    assert RULES.refusal(terms(), 64, reserved([]), NOW) is None
    assert RULES.refusal(terms(vo="atlas"), 64, reserved([]), NOW) is not None


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 900), st.booleans()), max_size=15))
def test_no_series_of_grants_overbooks(offers: list[tuple[int, int, bool]]) -> None:
    calendar = SlotCalendar(4)
    for n, (cpus, seconds, flexible) in enumerate(offers):
        offer = terms(agreement_id=AgreementId(f"a-{n}"), cpus=cpus, flexible=flexible, latest_start=at(900))
        decide(msgspec.structs.replace(offer, duration_seconds=float(seconds)), calendar, RULES, NOW)
        assert calendar.most_used() <= 4
        assert all(at(0) <= each.start_at <= at(900) for each in calendar)
