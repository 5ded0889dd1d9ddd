"""Reads the claims in tokens of trusted issuers (other systems), and makes principals of them: users of this system.

Three forms of claims are read: the WLCG profile, SciTokens and plain OpenID.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from wms.auth.policy import Action
from wms.auth.principal import Principal, owner_of
from wms.auth.trusted_issuer import TrustedIssuer
from wms.bounds import NAME_LENGTH, GivenName, Line, Name, Timestamp
from wms.errors import Rejected

ITEMS_LIMIT: Final = 1_000

Groups: TypeAlias = Annotated[tuple[Line, ...], msgspec.Meta(max_length=ITEMS_LIMIT)]
Audience: TypeAlias = Name | Annotated[tuple[Name, ...], msgspec.Meta(max_length=ITEMS_LIMIT)]

SCOPED: Final[Mapping[str, tuple[Action, ...]]] = {
    "compute.read": ("see", "see_detail", "fetch_output"),
    "compute.create": ("submit", "order_pilots"),
    "compute.modify": ("hold", "stop_and_hold", "release", "reschedule", "edit"),
    "compute.cancel": ("kill", "remove"),
}
"""The actions that each capability in a token permits. A capability is a scope of the token such as `compute.create`."""


class ForeignClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims that are read from the token of a trusted issuer (another system), by their names in the token."""

    iss: Name
    sub: GivenName
    aud: Audience
    exp: Timestamp
    iat: Timestamp
    nbf: Timestamp = 0.0
    jti: Name = ""
    scope: Annotated[str, msgspec.Meta(max_length=8_192)] | Groups = ""
    groups: Groups = ()
    wlcg_groups: Groups = msgspec.field(name="wlcg.groups", default=())
    wlcg_version: Name = msgspec.field(name="wlcg.ver", default="")
    version: Name = msgspec.field(name="ver", default="")

    @property
    def scopes(self) -> frozenset[str]:
        """The token's scopes. Issuers write them as one text, separated by spaces, or as a list."""
        return frozenset(self.scope.split() if isinstance(self.scope, str) else self.scope)


def fault(claims: ForeignClaims, issuer: TrustedIssuer) -> str:
    """Return why the claims are refused, as a sentence; empty if they are right.

    Refused are claims for no audience of this system, and those without the version that the issuer's profile demands.
    """
    meant_for = {claims.aud} if isinstance(claims.aud, str) else set(claims.aud)
    if meant_for.isdisjoint(issuer.audiences):
        return "it is meant for somebody else"
    if issuer.profile == "wlcg" and claims.wlcg_version.partition(".")[0] != "1":
        return "it is not of version 1 of the WLCG profile"
    if issuer.profile == "scitokens" and claims.version.lower() not in ("scitoken:2.0", "scitokens:2.0"):
        return "it is not of version 2.0 of SciTokens"
    return ""


def principal(
    claims: ForeignClaims, issuer: TrustedIssuer, body: Mapping[str, Any], signed: bytes
) -> Principal:
    """Return the user whom the claims of a token name, after its signature was verified. VO, group and rights come from the issuer's rules.

    `body` has all claims of the token. `signed` is the token without its signature: its hash is the token's id if there is no
    `jti`. Raise Rejected (TOKEN_INVALID) if the claims break the profile, if no rule of the issuer fits them, or if the
    owner's name is too long or not printable.
    """
    if why := fault(claims, issuer):
        raise _refused(why)
    scopes = claims.scopes
    groups = frozenset(claims.groups if issuer.profile == "plain" else claims.wlcg_groups)
    rule = next((each for each in issuer.rules if each.fits(groups, scopes, body)), None)
    if rule is None:
        raise _refused("no rule of this system gives its bearer a VO")
    owner = owner_of(issuer.url, claims.sub)
    if len(owner) > NAME_LENGTH or not owner.isprintable():
        raise _refused("its issuer and subject together are no name")
    return Principal(
        kind="user",
        owner=owner,
        group=rule.group,
        vo=rule.vo,
        rights=frozenset(rule.rights),
        actions=permitted(scopes, issuer),
        # Not all profiles name their tokens. The signature is no part of the name, as it can be spelt in several ways.
        token_id=claims.jti or hashlib.sha256(signed).hexdigest(),
        expires_at=claims.exp,
    )


def permitted(scopes: frozenset[str], issuer: TrustedIssuer) -> frozenset[str] | None:
    """Return the only actions that a token with these scopes permits; None if it is limited by its group and rights alone.

    A SciToken permits what its capabilities (scopes that begin with `compute`) name, and nothing else. Tokens of other
    profiles are limited in this way only if they have a capability.
    """
    capabilities = {each for each in scopes if each.partition(".")[0] == "compute"}
    if not capabilities and issuer.profile != "scitokens":
        return None
    return frozenset(action for each in capabilities for action in SCOPED.get(each, ()))


def _refused(why: str) -> Rejected:
    return Rejected(
        "TOKEN_INVALID", f"the token is refused: {why}", "ask its issuer, or an operator of this system"
    )
