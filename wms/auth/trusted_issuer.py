"""Trusted issuers: other systems whose users' tokens are accepted, and the rules that give these users a VO, a group and rights."""

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
    """A rule of a trusted issuer: a user whose token meets all of its conditions belongs to this VO and group, with these rights."""

    groups: Few = ()
    """Groups that the token must all have: in its claim `wlcg.groups`, or in `groups` with the profile plain."""
    scopes: Few = ()
    """Scopes that the token must all have, such as `compute.create`."""
    claims: Annotated[dict[GivenName, Name], msgspec.Meta(max_length=100)] = msgspec.field(
        default_factory=dict
    )
    """Values that further claims of the token must have, by the claim's name. If the claim is a list, the value must be in it."""
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
        """Return whether a token meets all conditions of the rule. `body` has all of its claims, by name."""
        return (
            groups.issuperset(self.groups)
            and scopes.issuperset(self.scopes)
            and all(_holds(body.get(name), wanted) for name, wanted in self.claims.items())
        )


class TrustedIssuer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of an issuer whose users' tokens are accepted: its rules, where its keys are, and how long they are trusted."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """The URL of the issuer, as its tokens name it in `iss`. Its discovery document is below this URL."""
    profile: Profile = "wlcg"
    audiences: Annotated[tuple[GivenName, ...], msgspec.Meta(min_length=1, max_length=100)] = ("wms",)
    """The audiences of this system: a token must be meant for one of them. `https://wlcg.cern.ch/jwt/v1/any` is accepted only if
    it is listed."""
    rules: Annotated[tuple[IssuerRule, ...], msgspec.Meta(min_length=1, max_length=RULES_LIMIT)]
    """The rules for the issuer's tokens: the first rule that fits a token decides. A token that none fits is refused."""
    key_hosts: Few = ()
    """Hosts, beside that of the issuer's URL, from which the issuer's keys may be fetched."""
    authorities: Line = ""
    """A file or directory with certificates of the authorities that sign the certificate of the issuer's server.

    Empty: the authorities that this machine trusts.
    """
    refresh_seconds: Annotated[float, msgspec.Meta(ge=1, le=DAY)] = 300.0
    """Seconds between two fetches of the issuer's keys. A key that the issuer withdraws is refused after at most that time."""
    trusted_seconds: Annotated[float, msgspec.Meta(ge=1, le=31 * DAY)] = 14_400.0
    """Seconds after the last successful fetch of the issuer's keys during which they are trusted. After that its tokens are refused."""

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
        """Return why keys may not be fetched from `url`, as the end of a sentence; empty if they may.

        `url` comes from the issuer's discovery document. It must be on a permitted host, and encrypted if the issuer's URL
        is.
        """
        if fault := address_fault(url):
            return fault
        own, other = urlsplit(self.url), urlsplit(url)
        if other.hostname not in (own.hostname, *self.key_hosts):
            return "is on another host, which key_hosts does not name"
        return "is not encrypted, and the issuer is" if own.scheme == "https" != other.scheme else ""


def address_fault(url: str) -> str:
    """Return why keys may not be fetched from a URL, as the end of a sentence; empty if they may.

    The URL must begin with https://, or with http:// for this machine itself. It must have a host, but no user, password or
    query.
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
