"""The CHECK constraints that the state table makes."""

from wms.job import constraint
from wms.job.state import FIRST, TRANSITIONS, State


def test_checks_of_the_database_name_every_state_and_move_once():
    for state in State:
        assert constraint.state_check().count(f"'{state}'") == 1
    moves = [f"{before}/{event}/{to}" for before, row in TRANSITIONS.items() for event, to in row.items()]
    for move in (*moves, *(f"/receive/{state}" for state in FIRST)):
        assert constraint.move_check().count(f"'{move}'") == 1
    assert constraint.move_check().count("'") == 2 * (len(moves) + len(FIRST) + 3)
