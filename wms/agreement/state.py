"""The state machine of agreements, as one table: `{state: {event: state}}`.

An offer is Requested until the site decides. A granted one is Temporary and expires by itself unless it is confirmed. An event that
the table does not name for a state is refused and changes nothing. The CHECK constraint of the table `agreement` is made from it.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class AgreementState(StrEnum):
    """How far an agreement is: a site's promise of slots from a time on. `AGREEMENT_MOVES` says what may follow."""

    REQUESTED = "Requested"
    TEMPORARY = "Temporary"
    CONFIRMED = "Confirmed"
    DENIED = "Denied"
    CANCELLED = "Cancelled"
    EXPIRED = "Expired"
    NO_SHOW = "NoShow"
    ENDED = "Ended"


class AgreementEvent(StrEnum):
    """An event that may move an agreement to another state."""

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
"""The states in which CPUs are reserved."""
ALIVE: Final = GRANTED | {AgreementState.REQUESTED}
"""The states in which the batch system may hold a reservation for the agreement."""


def agreement_after(state: AgreementState, event: AgreementEvent) -> AgreementState | None:
    """Return the state that `event` leads to from `state`, or None where the table refuses it."""
    return AGREEMENT_MOVES[state].get(event)


def state_check() -> str:
    """Return the SQL expression that holds for every state of the table."""
    quoted = ", ".join(f"'{state}'" for state in AgreementState)
    return f"state = any (array[{quoted}])"
