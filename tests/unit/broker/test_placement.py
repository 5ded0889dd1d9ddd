"""The state table of placements."""

from hypothesis import given
from hypothesis import strategies as st

from wms.broker.placement import (
    OPEN,
    PLACEMENT_MOVES,
    PlacementEvent,
    PlacementState,
    placement_sources,
)


def test_every_state_has_a_row_and_every_event_a_use():
    assert PLACEMENT_MOVES.keys() == set(PlacementState)
    assert {event for row in PLACEMENT_MOVES.values() for event in row} == set(PlacementEvent)


def test_open_placements_can_end_and_closed_ones_never_open_again():
    for state in PlacementState:
        assert bool(PLACEMENT_MOVES[state]) == (state in OPEN)


def test_a_started_placement_neither_fails_nor_is_given_up():
    assert set(PLACEMENT_MOVES[PlacementState.STARTED]) == {PlacementEvent.END}


@given(st.sampled_from(PlacementState), st.sampled_from(PlacementEvent))
def test_sources_are_the_states_that_an_event_is_legal_from(state, event):
    assert (event in PLACEMENT_MOVES[state]) == (state in placement_sources(event))
