"""Placements: what becomes of the broker's decision to run a job at one element, as one table: `{state: {event: state}}`.

A job has at most one open placement. A failed one is followed by another at the next best element, with the next number.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

Dispatch = Literal["pilot", "direct"]
"""How the job gets there: by a pilot that is bound to it, or as a batch job of its own."""


class PlacementState(StrEnum):
    """The state of a placement."""

    ORDERED = "Ordered"
    SENT = "Sent"
    STARTED = "Started"
    FAILED = "Failed"
    ENDED = "Ended"
    ABANDONED = "Abandoned"


class PlacementEvent(StrEnum):
    """An event that moves a placement to another state."""

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
"""The states in which a placement may still run its job."""


class PlacementFault(StrEnum):
    """The code of a placement that did not start its job."""

    NO_ELEMENT = "NO_ELEMENT"
    """No element of that name is advertised, or no endpoint leads to it."""
    REFUSED = "REFUSED"
    """The element refused the pilot or the job."""
    UNREACHABLE = "UNREACHABLE"
    """The element could not be reached in time."""
    NOT_ARRIVED = "NOT_ARRIVED"
    """The pilot submitter died before it sent the pilot: the element never knew it, and did nothing wrong."""
    PILOT_ENDED = "PILOT_ENDED"
    """The pilot ended, or was lost, before the job started."""
    TOO_LATE = "TOO_LATE"
    """The latest start passed before the job started."""
    NOT_TAKEN = "NOT_TAKEN"
    """The pilot came, and was not given the job: the job does not fit there."""
    NOT_TOGETHER = "NOT_TOGETHER"
    """Another job of its co-allocation could not start: the element did nothing wrong."""
    SUPERSEDED = "SUPERSEDED"
    """The job was placed anew, ordered back, or ended."""


def placement_after(state: PlacementState, event: PlacementEvent) -> PlacementState | None:
    """Return the state that `event` leads to from `state`, or None where the table refuses it."""
    return PLACEMENT_MOVES[state].get(event)


def placement_sources(event: PlacementEvent) -> tuple[PlacementState, ...]:
    """Return every state from which `event` is legal."""
    return tuple(state for state, moves in PLACEMENT_MOVES.items() if event in moves)
