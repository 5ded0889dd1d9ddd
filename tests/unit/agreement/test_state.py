"""The state table of agreements, for every state and event."""

from hypothesis import given
from hypothesis import strategies as st

from wms.agreement.state import (
    AGREEMENT_MOVES,
    ALIVE,
    GRANTED,
    AgreementEvent,
    AgreementState,
    agreement_after,
    state_check,
)

S, E = AgreementState, AgreementEvent


def test_every_state_has_a_row_and_every_event_a_use() -> None:
    assert AGREEMENT_MOVES.keys() == set(S)
    assert {event for row in AGREEMENT_MOVES.values() for event in row} == set(E)


@given(st.lists(st.sampled_from(E), max_size=20))
def test_whatever_happens_an_agreement_that_is_over_stays_over(events: list[AgreementEvent]) -> None:
    state, was_over = S.REQUESTED, False
    for event in events:
        state = agreement_after(state, event) or state
        assert not (was_over and state in ALIVE)
        was_over = was_over or state not in ALIVE


@given(st.lists(st.sampled_from(E), max_size=20))
def test_cpus_are_reserved_only_after_a_grant_and_for_long_only_after_a_confirmation(
    events: list[AgreementEvent],
) -> None:
    state, seen = S.REQUESTED, set[AgreementEvent]()
    for event in events:
        after = agreement_after(state, event)
        if after is not None:
            seen.add(event)
        state = after or state
        assert state not in GRANTED or E.GRANT in seen
        assert state is not S.CONFIRMED or E.CONFIRM in seen


def test_each_living_state_can_be_cancelled_and_no_other() -> None:
    assert {state for state in S if agreement_after(state, E.CANCEL)} == ALIVE


def test_an_event_leads_to_one_state_wherever_it_is_legal() -> None:
    leads = {event: {row[event] for row in AGREEMENT_MOVES.values() if event in row} for event in E}
    assert all(len(states) == 1 for states in leads.values()), leads


def test_the_check_names_every_state() -> None:
    assert all(f"'{state}'" in state_check() for state in S)
