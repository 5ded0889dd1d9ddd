"""A token of any kind whose signature is valid, and the one check of its times."""

from typing import TYPE_CHECKING, Final

import msgspec

from wms.auth.principal import Principal
from wms.errors import Rejected

if TYPE_CHECKING:
    # Pilots make tokens without any client of issuers.
    from wms.auth.issuer_keys import IssuerKey

LIFETIME_LIMIT: Final = 31 * 86_400
"""The longest time in seconds from a token's issue to its expiry. A longer-lived token is refused.

So no revocation needs to be stored for longer.
"""
SKEW_SECONDS: Final = 30
"""The seconds by which an issuer's clock may be ahead: a token is accepted that long before its validity begins.

There is no such tolerance at its expiry.
"""


class VerifiedToken(msgspec.Struct, frozen=True):
    """A token whose signature is valid: its bearer, its times in seconds since 1970, and the key that signed it."""

    principal: Principal
    issued_at: float
    not_before: float = 0.0
    key: "IssuerKey | None" = None
    """The trusted issuer's key that verified the token. None for tokens of this system, of payloads, and of issuers in the key file."""
    lifetime_limit: float = LIFETIME_LIMIT

    def check_times(self, now: float) -> None:
        """Raise Rejected unless the token is valid at `now`: TOKEN_INVALID, TOKEN_NOT_YET_VALID or TOKEN_EXPIRED.

        A time of issue in the future makes no life longer: at most `SKEW_SECONDS` of it are believed.
        """
        expires_at = self.principal.expires_at
        if expires_at - min(self.issued_at, now + SKEW_SECONDS) > self.lifetime_limit:
            raise Rejected("TOKEN_INVALID", "the token is refused: it lives too long", "get a new one")
        if max(self.issued_at, self.not_before) > now + SKEW_SECONDS:
            raise Rejected(
                "TOKEN_NOT_YET_VALID", "the token is not valid yet", "compare the clocks of the two machines"
            )
        if now >= expires_at:
            raise Rejected("TOKEN_EXPIRED", "the token has expired", "get a new one")
