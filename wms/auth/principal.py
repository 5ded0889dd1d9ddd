"""Principals: the identities behind requests, from verified tokens. Owner, group and VO have no other source."""

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import GivenName, Name, NameSet, PilotName, Timestamp
from wms.ids import Identity, JobId

Kind: TypeAlias = Literal["user", "service", "pilot", "site"]

Subject: TypeAlias = Annotated[str, msgspec.Meta(max_length=1_000)]
"""The subject of a certificate, such as `/DC=org/DC=example/CN=Jane Doe`."""
Fqans: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=255)], ...], msgspec.Meta(max_length=32)
]
"""VOMS roles (fully qualified attribute names)."""

ANY_SITE = "*"
"""The site in the token of an advertiser that may advertise for all sites, such as a system on one machine."""


ISSUER = "wms"
"""The issuer of this system's own tokens."""
NAME_MARK = "#"
"""The separator between the name of another issuer and its user's name. Names of this system's users never contain it."""


def owner_of(issuer: str, subject: str) -> str:
    """Return the owner name for a token's subject. Equal names at two issuers become two owners."""
    return subject if issuer == ISSUER else f"{issuer}{NAME_MARK}{subject}"


class Right(StrEnum):
    """A right that a group may grant its members. Other rights in a token are ignored."""

    JOB_MONITOR = "job_monitor"
    """Permission to see the jobs of the whole VO, without their details."""
    JOB_ADMINISTRATOR = "job_administrator"
    """Permission to act on the jobs of the whole VO as their owners may, and to set the shares of the VO's groups."""
    OPERATOR = "operator"
    """Permission to act on the jobs of all VOs, and to administer shares, limits, sites and dead letters."""
    GENERIC_PILOT = "generic_pilot"
    """Permission for a pilot to run the jobs of any group of its VO."""


class Principal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user, service, pilot or site whose token was verified. It is never built from the body of a message."""

    kind: Kind
    owner: GivenName
    """The token's subject, with the issuer's name if the issuer is another system. For a pilot, the owner for whose jobs it was sent."""
    group: Name
    vo: Name
    rights: NameSet = frozenset()
    pilot_id: PilotName | None = None
    site: Name | None = None
    ce: Name | None = None
    job_id: JobId | None = None
    """The one job that a bound pilot may be given; None for a pilot of any jobs."""
    sites: NameSet = frozenset()
    """The sites of an index's advertiser, as names or patterns such as `*.example.org`."""
    certificate_subject: Subject = ""
    fqans: Fqans = ()
    shares_jobs: bool = False
    """Whether the group's members share their jobs. The source is the group's own setting, never a token."""
    actions: NameSet | None = None
    """The only actions that the token permits its bearer, by its capabilities; None if it is not limited so."""
    token_id: Name
    expires_at: Timestamp
    """The token's expiry in seconds since 1970."""

    @property
    def identity(self) -> Identity:
        """Owner, group and VO of the jobs that the principal submits."""
        return Identity(self.owner, self.group, self.vo)
