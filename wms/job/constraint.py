"""The table of job states as SQL: expressions for the CHECK constraints of the tables `job` and `job_move`."""

from wms.job.state import FIRST, TRANSITIONS, Event, State

_FREQUENT = {"Waiting/match/Matched", "Matched/start/Running", "Running/finish/Done"}


def state_check() -> str:
    """Return an SQL expression that is true if the column `state` holds the name of a job state."""
    return f"state = any (array[{_quoted([str(state) for state in State])}])"


def move_check() -> str:
    """Return an SQL expression that is true if a row's columns `before`, `event` and `state` are an allowed move.

    An empty `before` is allowed for the events that create a job.
    """
    births = [_move("", Event.RECEIVE, state) for state in State if state in FIRST]
    moves = [
        _move(before, event, state) for before, row in TRANSITIONS.items() for event, state in row.items()
    ]
    # The list is gone through from its beginning for every row that is written.
    moves.sort(key=lambda move: move not in _FREQUENT)
    return f"coalesce(before, '') || '/' || event || '/' || state = any (array[{_quoted(moves + births)}])"


def _move(before: str, event: Event, state: State) -> str:
    return f"{before}/{event}/{state}"


def _quoted(words: list[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
