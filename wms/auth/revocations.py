"""Revocations: tokens, users and pilots that are refused although the signatures and times of their tokens are valid."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from wms.auth.principal import Principal
from wms.bounds import GivenName
from wms.errors import Rejected

RevocationKind: TypeAlias = Literal["token", "subject", "pilot"]
KINDS: Final[tuple[RevocationKind, ...]] = get_args(RevocationKind)


class Revocation(msgspec.Struct, frozen=True):
    """One entry of the list of revocations: a token by its id (`jti`), a user by the owner's name, or a pilot by its id."""

    kind: RevocationKind
    value: GivenName


class Revocations:
    """The revocations that are in force now, in memory. A task that reads the database replaces them all from time to time."""

    def __init__(self, revoked: Iterable[Revocation] = ()) -> None:
        self._revoked = frozenset(revoked)

    def __len__(self) -> int:
        return len(self._revoked)

    def replace(self, revoked: Iterable[Revocation]) -> None:
        """Replace all revocations by these."""
        self._revoked = frozenset(revoked)

    def check(self, principal: Principal) -> None:
        """Raise Rejected (TOKEN_REVOKED) if this principal, or the token from which it was made, was revoked.

        A pilot and its payloads are revoked by the pilot's id, not with its owner: it may also run jobs of others.
        """
        if self._revoked and any(each in self._revoked for each in _names(principal)):
            raise Rejected("TOKEN_REVOKED", "the token was revoked", "ask an operator of this system")


def _names(principal: Principal) -> tuple[Revocation, ...]:
    token = Revocation("token", principal.token_id)
    if principal.kind in ("pilot", "payload"):
        return (token, Revocation("pilot", principal.pilot_id or ""))
    return (token, Revocation("subject", principal.owner))
