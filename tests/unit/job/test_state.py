"""The state table, and the decisions that are made by it, for every state and every fact a decision looks at."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from docs.pages.states import RESERVED, UNUSED
from wms.job.state import AT_A_PILOT, ENDED, FIRST, TRANSITIONS, Event, State, after, sources

ROOT = Path(__file__).parents[3]


def test_every_state_has_a_row_and_every_event_a_use():
    assert TRANSITIONS.keys() == set(State)
    assert {event for row in TRANSITIONS.values() for event in row} == set(Event)
    assert all(sources(event) for event in Event)


def reachable(start: set[State]) -> set[State]:
    found = set(start)
    while new := {to for state in found for to in TRANSITIONS[state].values()} - found:
        found |= new
    return found


def test_every_state_can_be_reached_and_left_but_the_last():
    assert reachable(set(FIRST)) == set(State)
    for state in State:
        assert state is State.DELETED or State.DELETED in reachable({state})


def test_ended_jobs_stay_ended_unless_a_failed_one_is_tried_again():
    for state in ENDED - {State.FAILED}:
        assert set(TRANSITIONS[state].values()) <= {State.DELETED}
    assert set(TRANSITIONS[State.FAILED]) == {Event.RESCHEDULE, Event.REMOVE}
    assert not TRANSITIONS[State.DELETED]


def test_an_event_leads_to_one_state_wherever_it_is_legal():
    """So that a history tells the state by its events alone, but for a birth."""
    leads = {event: {row[event] for row in TRANSITIONS.values() if event in row} for event in Event}
    assert all(len(states) == 1 for states in leads.values()), leads


def test_who_may_be_killed():
    assert {state for state in State if after(state, Event.KILL)} == set(State) - ENDED - {State.COMPLETED}


def test_only_a_waiting_job_is_matched_and_only_pilots_have_jobs_that_run():
    assert sources(Event.MATCH) == (State.WAITING,)
    for event in (Event.START, Event.COMPLETE, Event.DELIVER, Event.FINISH, Event.RESUME):
        assert set(sources(event)) <= AT_A_PILOT


@given(st.sampled_from(State), st.sampled_from(Event))
def test_after_refuses_exactly_what_the_table_does_not_name(state, event):
    assert after(state, event) is TRANSITIONS[state].get(event)


def caused() -> set[Event]:
    """Return the events that code of the library or a service causes; births are written in SQL."""
    named: set[Event] = {Event.RECEIVE}
    for source in ("wms", "services"):
        for path in (ROOT / source).rglob("*.py"):
            if path.parent.name != "job" or path.stem not in ("state", "constraint"):
                named |= {Event[name] for name in re.findall(r"\bEvent\.([A-Z]+)\b", path.read_text("utf-8"))
                          if name in Event.__members__}  # fmt: skip
    return named


def test_the_page_names_exactly_the_events_and_states_that_nothing_brings_about():
    """Who adds a service that does takes them off the page."""
    assert set(Event) - caused() == UNUSED
    reached = {State.RECEIVED}
    while (
        new := {to for state in reached for event, to in TRANSITIONS[state].items() if event not in UNUSED}
        - reached
    ):
        reached |= new
    assert RESERVED.keys() == set(State) - reached
