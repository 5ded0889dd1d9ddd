"""The job state machine, as one table: `{state: {event: state}}`.

The states and moves are those of DIRAC's JobStatus, so that an operator who knows one knows the other. Five things are added that
DIRAC's users miss. **Held** is a new state, with a coded reason. A **Waiting** job may fail (nothing can ever run it) or be held.
A **Waiting** job may be checked again, since the resource broker must place it anew once its placement has failed. A **Matched**
or **Stalled** job may be rescheduled when its lease runs out. A **Rescheduled** job may be held. An event that the table does not
name for a state is refused and changes nothing. The diagram in `docs/states.md`, the CHECK constraints of the database and the
property tests are made from this table.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    """The states of a job. The names are those of DIRAC, with Held added."""

    SUBMITTING = "Submitting"
    RECEIVED = "Received"
    CHECKING = "Checking"
    SCOUTING = "Scouting"
    STAGING = "Staging"
    WAITING = "Waiting"
    MATCHED = "Matched"
    RESCHEDULED = "Rescheduled"
    RUNNING = "Running"
    STALLED = "Stalled"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    HELD = "Held"
    DONE = "Done"
    FAILED = "Failed"
    KILLED = "Killed"
    DELETED = "Deleted"


class Event(StrEnum):
    """The events that may move a job to another state."""

    RECEIVE = "receive"
    CHECK = "check"
    SCOUT = "scout"
    STAGE = "stage"
    ENQUEUE = "enqueue"
    MATCH = "match"
    START = "start"
    STALL = "stall"
    RESUME = "resume"
    COMPLETE = "complete"
    DELIVER = "deliver"
    FINISH = "finish"
    FAIL = "fail"
    KILL = "kill"
    RESCHEDULE = "reschedule"
    HOLD = "hold"
    RELEASE = "release"
    REMOVE = "remove"


_S, _E = State, Event

TRANSITIONS: Final[Mapping[State, Mapping[Event, State]]] = MappingProxyType(
    {
        _S.SUBMITTING: {
            _E.RECEIVE: _S.RECEIVED,
            _E.CHECK: _S.CHECKING,
            _E.KILL: _S.KILLED,
            _E.REMOVE: _S.DELETED,
        },
        _S.RECEIVED: {
            _E.SCOUT: _S.SCOUTING,
            _E.CHECK: _S.CHECKING,
            _E.STAGE: _S.STAGING,
            _E.ENQUEUE: _S.WAITING,
            _E.HOLD: _S.HELD,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
            _E.REMOVE: _S.DELETED,
        },
        _S.CHECKING: {
            _E.SCOUT: _S.SCOUTING,
            _E.STAGE: _S.STAGING,
            _E.ENQUEUE: _S.WAITING,
            _E.RESCHEDULE: _S.RESCHEDULED,
            _E.HOLD: _S.HELD,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
            _E.REMOVE: _S.DELETED,
        },
        _S.SCOUTING: {
            _E.CHECK: _S.CHECKING,
            _E.STALL: _S.STALLED,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
        },
        _S.STAGING: {
            _E.CHECK: _S.CHECKING,
            _E.ENQUEUE: _S.WAITING,
            _E.HOLD: _S.HELD,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
        },
        _S.WAITING: {
            _E.CHECK: _S.CHECKING,
            _E.MATCH: _S.MATCHED,
            _E.RESCHEDULE: _S.RESCHEDULED,
            _E.HOLD: _S.HELD,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
            _E.REMOVE: _S.DELETED,
        },
        _S.MATCHED: {
            _E.START: _S.RUNNING,
            _E.RESCHEDULE: _S.RESCHEDULED,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
        },
        _S.RESCHEDULED: {
            _E.ENQUEUE: _S.WAITING,
            _E.RECEIVE: _S.RECEIVED,
            _E.HOLD: _S.HELD,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
            _E.REMOVE: _S.DELETED,
        },
        _S.RUNNING: {
            _E.STALL: _S.STALLED,
            _E.COMPLETE: _S.COMPLETING,
            _E.FINISH: _S.DONE,
            _E.RESCHEDULE: _S.RESCHEDULED,
            _E.RECEIVE: _S.RECEIVED,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
        },
        _S.STALLED: {
            _E.RESUME: _S.RUNNING,
            _E.RESCHEDULE: _S.RESCHEDULED,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
        },
        _S.COMPLETING: {
            _E.STALL: _S.STALLED,
            _E.DELIVER: _S.COMPLETED,
            _E.FINISH: _S.DONE,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
        },
        _S.COMPLETED: {_E.FINISH: _S.DONE, _E.FAIL: _S.FAILED},
        _S.HELD: {
            _E.RELEASE: _S.WAITING,
            _E.FAIL: _S.FAILED,
            _E.KILL: _S.KILLED,
            _E.REMOVE: _S.DELETED,
        },
        _S.DONE: {_E.REMOVE: _S.DELETED},
        _S.FAILED: {_E.RESCHEDULE: _S.RESCHEDULED, _E.REMOVE: _S.DELETED},
        _S.KILLED: {_E.REMOVE: _S.DELETED},
        _S.DELETED: {},
    }
)

FIRST: Final = frozenset({State.SUBMITTING, State.RECEIVED})
"""The states in which a new job may begin."""

ENDED: Final = frozenset({State.DONE, State.FAILED, State.KILLED, State.DELETED})
"""The states of ended jobs: nothing runs or waits for them any more."""

AT_A_PILOT: Final = frozenset(
    {State.MATCHED, State.RUNNING, State.STALLED, State.COMPLETING, State.COMPLETED}
)
"""The states of jobs that a pilot has or may have. Exactly these jobs have a lease."""

RARE: Final = frozenset(State) - AT_A_PILOT - {State.WAITING, State.DONE}
"""The states that few jobs are in at a time. Table `job` has a column and an index of them, kept by a trigger."""


def after(state: State, event: Event) -> State | None:
    """Return the state to which `event` moves a job in `state`, or None if the table does not allow it."""
    return TRANSITIONS[state].get(event)


def sources(event: Event) -> tuple[State, ...]:
    """Return all states in which the table allows `event`, in the order of `State`."""
    return tuple(state for state, moves in TRANSITIONS.items() if event in moves)
