"""The states of agreements and the events that change them, as one table: `{state: {event: next state}}`.

An offer is Requested until the site decides. A granted one is Temporary, and expires unless the resource broker confirms it. An
event that the table does not name for a state is refused and changes nothing. The database's CHECK constraint on the column
`state` is made from the names of the states.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class AgreementState(StrEnum):
    """The state of an agreement, by which a site reserves CPUs for a job. `AGREEMENT_MOVES` says what may follow it."""

    REQUESTED = "Requested"
    TEMPORARY = "Temporary"
    CONFIRMED = "Confirmed"
    DENIED = "Denied"
    CANCELLED = "Cancelled"
    EXPIRED = "Expired"
    NO_SHOW = "NoShow"
    ENDED = "Ended"


class AgreementEvent(StrEnum):
    """An event that may change the state of an agreement. `AGREEMENT_MOVES` says in which states it is allowed."""

    GRANT = "grant"
    DENY = "deny"
    MOVE = "move"
    CONFIRM = "confirm"
    CANCEL = "cancel"
    EXPIRE = "expire"
    MISS = "miss"
    END = "end"


_S, _E = AgreementState, AgreementEvent

AGREEMENT_MOVES: Final[Mapping[AgreementState, Mapping[AgreementEvent, AgreementState]]] = MappingProxyType(
    {
        _S.REQUESTED: {_E.GRANT: _S.TEMPORARY, _E.DENY: _S.DENIED, _E.CANCEL: _S.CANCELLED},
        _S.TEMPORARY: {
            # A flexible one may start at another time of its window.
            _E.MOVE: _S.TEMPORARY,
            _E.CONFIRM: _S.CONFIRMED,
            _E.CANCEL: _S.CANCELLED,
            _E.EXPIRE: _S.EXPIRED,
        },
        _S.CONFIRMED: {_E.CANCEL: _S.CANCELLED, _E.MISS: _S.NO_SHOW, _E.END: _S.ENDED},
        _S.DENIED: {},
        _S.CANCELLED: {},
        _S.EXPIRED: {},
        _S.NO_SHOW: {},
        _S.ENDED: {},
    }
)

GRANTED: Final = frozenset({AgreementState.TEMPORARY, AgreementState.CONFIRMED})
"""The states in which CPUs are reserved for the agreement."""
ALIVE: Final = GRANTED | {AgreementState.REQUESTED}
"""The states of agreements that are not over: the site has yet to decide on them, or has CPUs reserved for them."""


def agreement_after(state: AgreementState, event: AgreementEvent) -> AgreementState | None:
    """Return the state of an agreement after `event` in `state`; None if `AGREEMENT_MOVES` does not allow the event there."""
    return AGREEMENT_MOVES[state].get(event)


def state_check() -> str:
    """Return an SQL condition on the column `state` that is true for the names in `AgreementState` only."""
    quoted = ", ".join(f"'{state}'" for state in AgreementState)
    return f"state = any (array[{quoted}])"
