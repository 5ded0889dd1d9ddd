"""Verifies tokens of trusted issuers (other systems). Their bearers are users.

The tokens are signed with ES256 or RS256 by a key that the issuer publishes.
"""

import base64
import re
from typing import Any, Final

import jwt
import msgspec

from wms.auth import foreign_claims
from wms.auth.foreign_claims import ForeignClaims
from wms.auth.issuer_keys import ALGORITHMS, IssuerKeys
from wms.auth.verified_token import VerifiedToken
from wms.bounds import Name
from wms.errors import Rejected

UNREADABLE: Final = (jwt.PyJWTError, msgspec.ValidationError, ValueError, TypeError, RecursionError)
"""The classes of errors that reading a malformed token may raise."""

_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_OPTIONS: Any = {
    "require": ["iss", "aud", "sub", "exp", "iat"],
    # The audience is compared by the issuer's profile, and times by us, with the caller's clock.
    "verify_aud": False,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}
_REASONS: dict[type[BaseException], str] = {
    jwt.InvalidSignatureError: "its signature is wrong",
    jwt.MissingRequiredClaimError: "it lacks a claim",
    msgspec.ValidationError: "it lacks a claim, or one is of the wrong type",
}


class _Issued(msgspec.Struct):
    iss: Name = ""


def issuer_in(text: str) -> str:
    """Return the claim `iss` of a token, without verifying the token; empty if it cannot be read."""
    try:
        payload = text.split(".")[1]
        body = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        return msgspec.json.decode(body, type=_Issued).iss
    except (IndexError, ValueError, msgspec.DecodeError, RecursionError):
        return ""


def verified(text: str, issuer: str, keys: IssuerKeys) -> VerifiedToken:
    """Verify a token's signature by a key of the trusted issuer. Return its bearer, start of validity and key.

    `issuer` is the issuer's URL. The caller checks the token's times, and whether the key is still trusted. Raise Rejected
    (TOKEN_INVALID) if the signature or the claims are wrong. Raise Rejected (TOKEN_KEY_UNKNOWN) if `keys` has no such key;
    the issuer's keys are then fetched soon.
    """
    if not _FORM.fullmatch(text):
        raise _invalid("it is no token")
    key = keys.find(issuer, _key_name(text))
    try:
        body = jwt.decode(text, key.public, algorithms=[key.algorithm], issuer=issuer, options=_OPTIONS)
        claims = msgspec.convert(body, ForeignClaims)
    except UNREADABLE as error:
        raise _invalid(_REASONS.get(type(error), "it is no token of a user")) from None
    bearer = foreign_claims.principal(claims, key.issuer, body, text.rpartition(".")[0].encode())
    return VerifiedToken(bearer, claims.iat, claims.nbf, key)


def _key_name(text: str) -> str:
    """Return the id of the key (`kid`) in a token's header.

    Raise Rejected (TOKEN_INVALID) if the header has no key id, a critical extension, or an algorithm other than ES256 and
    RS256.
    """
    try:
        header = jwt.get_unverified_header(text)
    except UNREADABLE:
        raise _invalid("it is no token") from None
    if header.get("alg") not in ALGORITHMS or "crit" in header:
        raise _invalid(f"of another issuer, only {' and '.join(ALGORITHMS)} are accepted")
    kid = header.get("kid")
    if not isinstance(kid, str) or not kid:
        raise _invalid("it does not name its key")
    return kid


def _invalid(why: str) -> Rejected:
    return Rejected("TOKEN_INVALID", f"the token is refused: {why}", "get a new one from its issuer")
