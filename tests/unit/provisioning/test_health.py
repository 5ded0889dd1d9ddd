"""Elements that eat jobs are found by what their jobs met, no job's own fault is an element's, and states follow the table."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.provisioning.health import (
    AVOIDED,
    MOVES,
    ElementHealth,
    Event,
    HealthChange,
    HealthPolicy,
    QueueOutcomes,
    State,
    apply,
    judge,
    wants_probe,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STATES, EVENTS = get_args(State), get_args(Event)
TERMS = HealthPolicy(failures=5, share=0.8, owners=3, first_pause_seconds=60, longest_pause_seconds=600)


def moved(health: ElementHealth, *events: Event, now: datetime = NOW) -> ElementHealth:
    for event in events:
        after = apply(health, HealthChange(event, "why", "who"), now, TERMS)
        assert after is not None, (health.state, event)
        health = after
    return health


def test_every_state_can_be_left_for_healthy():
    for state in STATES:
        reached: set[State] = {state}
        last: set[State] = set()
        while reached != last:
            last = set(reached)
            reached |= {after for each in last for after in MOVES[each].values()}
        assert "healthy" in reached
    assert MOVES.keys() == set(STATES)
    assert {event for each in MOVES.values() for event in each} == set(EVENTS)


@given(st.sampled_from(STATES), st.sampled_from(EVENTS))
def test_a_move_that_is_not_in_the_table_changes_nothing(state, event):
    before = ElementHealth(state=state, relapses=2)
    after = apply(before, HealthChange(event, "why", "who"), NOW, TERMS)
    assert (after is None) == (event not in MOVES[state])
    if after is not None:
        assert after.state == MOVES[state][event]
        assert (after.reason, after.said_by) == ("why", "who")


def test_what_an_operator_shut_nothing_but_an_operator_opens():
    for state in ("banned", "draining"):
        assert set(MOVES[state]) == {"ban", "unban", "drain"}
        assert state in AVOIDED


def test_the_pause_doubles_with_every_canary_that_fails_up_to_the_longest():
    health, pauses = moved(ElementHealth(), "eat"), []
    for _ in range(6):
        assert health.until is not None
        pauses.append((health.until - NOW).total_seconds())
        health = moved(health, "probe", "relapse")
    assert pauses == [60, 120, 240, 480, 600, 600]
    assert moved(health, "probe", "release") == ElementHealth(
        state="healthy", since=NOW, reason="why", said_by="who"
    )


def test_a_canary_is_due_when_the_pause_is_over_and_not_before():
    health = moved(ElementHealth(), "eat")
    assert not wants_probe(health, NOW + timedelta(seconds=59))
    assert wants_probe(health, NOW + timedelta(seconds=60))
    assert not wants_probe(moved(health, "probe"), NOW + timedelta(days=1))


def test_since_tells_when_the_state_began_not_when_it_was_said_again():
    health = moved(moved(ElementHealth(), "ban"), "ban", now=NOW + timedelta(hours=1))
    assert health.since == NOW


def tried(
    ce: str, ended: int, quick: int, *, kind: str = "k", owner: str = "ann", queue: int = 1
) -> QueueOutcomes:
    return QueueOutcomes("A", ce, queue, kind, owner, ended, quick)


def eating(*tried_: QueueOutcomes) -> list[str]:
    return [each.ce for each in judge(tried_, TERMS)]


def test_an_element_where_jobs_of_several_owners_fail_at_once_eats_them():
    assert eating(*(tried("hole", 3, 3, owner=owner, kind=owner) for owner in ("ann", "bob", "cid"))) == [
        "hole"
    ]


def test_one_users_broken_jobs_quarantine_nothing():
    assert eating(tried("ce", 500, 500)) == []
    assert eating(tried("ce", 500, 500), tried("other", 500, 480)) == [], "they fail everywhere"


def test_one_users_jobs_are_enough_where_they_do_well_elsewhere():
    assert eating(tried("hole", 20, 20), tried("good", 5, 0)) == ["hole"]
    (verdict,) = judge([tried("hole", 20, 20), tried("good", 5, 0)], TERMS)
    assert "20 of 20 attempts failed within 30 s, and the same kinds do well elsewhere" in verdict.reason


def test_broken_jobs_do_not_hide_an_element_that_eats_the_others():
    broken = [tried("hole", 50, 50, kind="broken"), tried("good", 50, 50, kind="broken")]
    assert eating(*broken, tried("hole", 10, 10), tried("good", 10, 0)) == ["hole"]


def test_an_element_where_most_do_well_is_no_hole_whatever_the_number_of_failures():
    others = [tried("ce", 100, 0, kind=str(n), owner=str(n)) for n in range(3)]
    assert eating(tried("ce", 60, 60), tried("good", 5, 0), *others) == []


@pytest.mark.parametrize(("quick", "found"), [(4, []), (5, ["hole"])])
def test_too_few_failures_prove_nothing(quick, found):
    assert eating(tried("hole", quick, quick), tried("good", 5, 0)) == found


@given(
    st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1), st.sampled_from("abc")), min_size=1, max_size=6)
)
def test_where_every_element_fares_alike_none_is_blamed(kinds):
    """A property: what depends on the jobs alone, however it fails, and was tried in two places, speaks against neither."""
    everywhere = [
        tried(ce, ended, round(ended * rate), kind=str(n), owner=owner)
        for n, (ended, rate, owner) in enumerate(kinds)
        for ce in ("one", "two")
    ]
    assert eating(*everywhere) == []
