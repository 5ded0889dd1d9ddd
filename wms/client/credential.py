"""The user's token on the client's side: its owner and its expiry. Only services verify tokens."""

import base64
import binascii
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from wms.auth.principal import ISSUER, owner_of
from wms.errors import Rejected

LIMIT = 16_384
REMEDY = "ask for a new one; on a machine of your own `wms token create` makes one"


class UserCredential(msgspec.Struct, frozen=True):
    """A user's token and what it claims about its owner and expiry. The claims are not verified."""

    token: str
    owner: str
    expires_at: float
    """The token's expiry in seconds since 1970."""
    claims: dict[str, Any]

    def check(self, now: float) -> None:
        """Raise Rejected if the token has expired at `now` (seconds since 1970), so that no request is sent with it."""
        if now >= self.expires_at:
            ended = datetime.fromtimestamp(self.expires_at, UTC)
            raise Rejected("TOKEN_EXPIRED", f"your token expired at {ended:%Y-%m-%d %H:%M:%S} UTC", REMEDY)


class TokenSource(Protocol):
    """The source of the user's token, which is read anew for each request."""

    def read(self, now: float) -> UserCredential:
        """Return the token in use. Raise Rejected if there is none, or if it has expired at `now` (seconds since 1970)."""


class TokenFile:
    """A file with a token. It is read anew for each request, so another process may replace the token at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, now: float) -> UserCredential:
        """Return the token that is in the file now.

        Raise Rejected if the file is missing, open to other users or without a token. Raise it too if the token has expired
        at `now` (seconds since 1970).
        """
        try:
            with self.path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read(LIMIT)
        except OSError as error:
            raise Rejected("NO_TOKEN", f"no token in {self.path}: {error.strerror}", REMEDY) from None
        if mode & 0o077:
            raise Rejected(
                "TOKEN_EXPOSED",
                f"others may read or change the token in {self.path}",
                f"chmod 600 {self.path}; it has {mode & 0o777:o}",
            )
        credential = decode(text.strip(), str(self.path))
        credential.check(now)
        return credential


def decode(text: bytes, source: str) -> UserCredential:
    """Return a token (a JWT) with its claims, which are not verified.

    Raise Rejected if the text is no JWT. `source` says in the error where the text came from.
    """
    try:
        _, payload, _ = text.split(b".")
        claims = msgspec.json.decode(
            base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4)), type=dict
        )
        owner, expires_at = claims["sub"], float(claims["exp"])
        owner = owner_of(str(claims.get("iss", ISSUER)), str(owner))
        credential = UserCredential(text.decode("ascii"), owner, expires_at, claims)
    except (ValueError, TypeError, KeyError, binascii.Error, msgspec.DecodeError):
        raise Rejected("TOKEN_INVALID", f"{source} holds no token that can be read", REMEDY) from None
    return credential
