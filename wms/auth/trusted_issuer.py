"""Trusted issuers: other systems whose users' tokens are accepted, and the rules that give those users VO, group and rights."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from wms.auth.principal import ISSUER, NAME_MARK, Right
from wms.bounds import GivenName, Line, Name

Profile: TypeAlias = Literal["wlcg", "scitokens", "plain"]
"""The form of an issuer's tokens: the WLCG profile, SciTokens, or plain OpenID tokens."""
ISSUERS_LIMIT: Final = 32
RULES_LIMIT: Final = 1_000
DAY: Final = 86_400
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})

Few: TypeAlias = Annotated[tuple[GivenName, ...], msgspec.Meta(max_length=100)]


class IssuerRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A rule: a user whose token meets all of its conditions belongs to this VO and group, with these rights."""

    groups: Few = ()
    """Groups that the token must have, all of them: in `wlcg.groups`, or in `groups` with the profile plain."""
    scopes: Few = ()
    """Scopes that the token must have, all of them, such as `compute.create`."""
    claims: Annotated[dict[GivenName, Name], msgspec.Meta(max_length=100)] = msgspec.field(
        default_factory=dict
    )
    """Further claims that the token must have, each with its text, or with one that its list must contain."""
    vo: GivenName
    group: GivenName
    rights: Annotated[tuple[Right, ...], msgspec.Meta(max_length=10)] = ()

    def __post_init__(self) -> None:
        if not (self.groups or self.scopes or self.claims):
            raise ValueError(
                "a rule needs a condition: groups, scopes or claims; `claims = {sub = ...}` names one user"
            )
        if Right.GENERIC_PILOT in self.rights:
            raise ValueError("generic_pilot is a right of pilots, which this system's own tokens alone give")

    def fits(self, groups: frozenset[str], scopes: frozenset[str], body: Mapping[str, Any]) -> bool:
        """Return whether a token with these groups, scopes and claims (`body`) meets all conditions of the rule."""
        return (
            groups.issuperset(self.groups)
            and scopes.issuperset(self.scopes)
            and all(_holds(body.get(name), wanted) for name, wanted in self.claims.items())
        )


class TrustedIssuer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An issuer whose users' tokens are accepted: by which rules, and where its keys are and for how long they are trusted."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """The URL of the issuer, as its tokens name it in `iss`. Its discovery document is below this URL."""
    profile: Profile = "wlcg"
    audiences: Annotated[tuple[GivenName, ...], msgspec.Meta(min_length=1, max_length=100)] = ("wms",)
    """The audiences of this system: a token must be meant for one of them. `https://wlcg.cern.ch/jwt/v1/any` is accepted only if
    it is listed."""
    rules: Annotated[tuple[IssuerRule, ...], msgspec.Meta(min_length=1, max_length=RULES_LIMIT)]
    """The rules for its tokens: the first one that fits a token decides. A token that none fits is refused."""
    key_hosts: Few = ()
    """Hosts beside the issuer's own from which its keys may be fetched."""
    authorities: Line = ""
    """A file or directory with certificates of the authorities of its server. Empty: those that this machine trusts."""
    refresh_seconds: Annotated[float, msgspec.Meta(ge=1, le=DAY)] = 300.0
    """Seconds between two fetches of its keys. A key that it withdrew is refused after at most that time."""
    trusted_seconds: Annotated[float, msgspec.Meta(ge=1, le=31 * DAY)] = 14_400.0
    """Seconds for which its keys are trusted after they were last fetched, if it cannot be reached."""

    def __post_init__(self) -> None:
        if fault := address_fault(self.url) or ("names this system's own" if self.url == ISSUER else ""):
            raise ValueError(f"the issuer {self.url}: {fault}")
        if self.trusted_seconds < self.refresh_seconds:
            raise ValueError("trusted_seconds must not be less than refresh_seconds")

    @property
    def discovery(self) -> str:
        """The URL of the issuer's OpenID discovery document."""
        return f"{self.url.rstrip('/')}/.well-known/openid-configuration"

    def keys_fault(self, url: str) -> str:
        """Return why keys may not be fetched from `url`, which the discovery document names; empty if they may."""
        if fault := address_fault(url):
            return fault
        own, other = urlsplit(self.url), urlsplit(url)
        if other.hostname not in (own.hostname, *self.key_hosts):
            return "is on another host, which key_hosts does not name"
        return "is not encrypted, and the issuer is" if own.scheme == "https" != other.scheme else ""


def address_fault(url: str) -> str:
    """Return why keys may not be fetched from a URL, as the end of a sentence; empty if they may.

    HTTPS is needed, or HTTP on this machine.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    if NAME_MARK in url or not url.isprintable() or not url.isascii() or any(c.isspace() for c in url):
        return "has a sign that no address has"
    if not host or parts.username or parts.password:
        return "must name a host, and no user"
    if parts.query:
        return "must have no query"
    if parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK):
        return ""
    return "must begin with https:// (http:// only on this machine)"


def _holds(claim: Any, wanted: str) -> bool:
    return claim == wanted or (isinstance(claim, list) and wanted in claim)
