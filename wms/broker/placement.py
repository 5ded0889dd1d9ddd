"""The states of a placement: the resource broker's decision to run a job at one computing element.

A job has at most one open placement. After a failed one the broker makes another, at the next best element.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

Dispatch = Literal["pilot", "direct"]
"""How a placed job gets to its element: by a pilot sent for this job alone, or directly as a batch job."""


class PlacementState(StrEnum):
    """The state of a placement. `PLACEMENT_MOVES` says what may follow it."""

    ORDERED = "Ordered"
    SENT = "Sent"
    STARTED = "Started"
    FAILED = "Failed"
    ENDED = "Ended"
    ABANDONED = "Abandoned"


class PlacementEvent(StrEnum):
    """An event that may change the state of a placement, by `PLACEMENT_MOVES`."""

    SEND = "send"
    START = "start"
    FAIL = "fail"
    END = "end"
    ABANDON = "abandon"


_S, _E = PlacementState, PlacementEvent

PLACEMENT_MOVES: Final[Mapping[PlacementState, Mapping[PlacementEvent, PlacementState]]] = MappingProxyType(
    {
        # A pilot may start its job before the sender has written that it was sent.
        _S.ORDERED: {
            _E.SEND: _S.SENT,
            _E.START: _S.STARTED,
            _E.FAIL: _S.FAILED,
            _E.ABANDON: _S.ABANDONED,
        },
        _S.SENT: {_E.START: _S.STARTED, _E.FAIL: _S.FAILED, _E.ABANDON: _S.ABANDONED},
        _S.STARTED: {_E.END: _S.ENDED},
        _S.FAILED: {},
        _S.ENDED: {},
        _S.ABANDONED: {},
    }
)

OPEN: Final = frozenset({PlacementState.ORDERED, PlacementState.SENT, PlacementState.STARTED})
"""The states of an open placement: by it the job may still start, or is running."""


class PlacementFault(StrEnum):
    """The code that says why a placement did not start its job."""

    NO_ELEMENT = "NO_ELEMENT"
    """No computing element of that name is advertised, or no endpoint is known by which it is reached."""
    REFUSED = "REFUSED"
    """The computing element refused the pilot or the batch job."""
    UNREACHABLE = "UNREACHABLE"
    """The computing element could not be reached in time."""
    NOT_ARRIVED = "NOT_ARRIVED"
    """The pilot submitter died before it sent the pilot. The computing element is not at fault."""
    PILOT_ENDED = "PILOT_ENDED"
    """The pilot ended, or was lost, before the job started."""
    RESERVATION_LOST = "RESERVATION_LOST"
    """The job's reservation ended before the job started: it was cancelled, unused for too long, or lost."""
    TOO_LATE = "TOO_LATE"
    """The latest start that the user allows passed before the job started."""
    NOT_TAKEN = "NOT_TAKEN"
    """The pilot started and asked for the job, but the matcher refused, since the job does not fit the resource."""
    NOT_TRUSTED = "NOT_TRUSTED"
    """The job was to be sent directly, where no sandbox holds it, and the element's configuration does not trust its owner with that."""
    NOT_TOGETHER = "NOT_TOGETHER"
    """Another job that was to start at the same time (co-allocation) could not start. The computing element is not at fault."""
    SUPERSEDED = "SUPERSEDED"
    """The placement is obsolete: the job was placed anew, taken back to be brokered again, or ended."""


def placement_sources(event: PlacementEvent) -> tuple[PlacementState, ...]:
    """Return every state of a placement in which `event` is allowed."""
    return tuple(state for state, moves in PLACEMENT_MOVES.items() if event in moves)
