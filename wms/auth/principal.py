"""Principals: who sends a request, as its verified token says. Owner, group and VO of jobs have no other source."""

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import EpochNumber, GivenName, Name, NameSet, PilotName, Timestamp
from wms.ids import Identity, JobId

Kind: TypeAlias = Literal["user", "service", "pilot", "site"]
"""The kinds of bearers whose tokens are signed with a private key."""
PrincipalKind: TypeAlias = Kind | Literal["payload"]
"""All kinds of bearers. A payload's token is made with a key that follows from its pilot's (`payload_token`)."""

Subject: TypeAlias = Annotated[str, msgspec.Meta(max_length=1_000)]
"""The subject of a certificate, such as `/DC=org/DC=example/CN=Jane Doe`."""
Fqans: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=255)], ...], msgspec.Meta(max_length=32)
]
"""VOMS roles of a user (fully qualified attribute names), such as `/lhcb/Role=production`."""

ANY_SITE = "*"
"""The site in the token of an advertiser that may publish ads for all sites, as in a system on one machine."""


ISSUER = "wms"
"""The issuer's name in this system's own tokens."""
NAME_MARK = "#"
"""What separates the name of another issuer from the name of its user. Names of this system's users never contain it."""


def owner_of(issuer: str, subject: str) -> str:
    """Return the owner's name for the subject of a token. Equal subjects of two issuers become two owners."""
    return subject if issuer == ISSUER else f"{issuer}{NAME_MARK}{subject}"


class Right(StrEnum):
    """A right that a token may give its bearer. Other rights in a token are ignored."""

    JOB_MONITOR = "job_monitor"
    """To see the jobs of the whole VO, without their details."""
    JOB_ADMINISTRATOR = "job_administrator"
    """To act on the jobs of the whole VO as their owners may, and to set the shares of the VO's groups."""
    OPERATOR = "operator"
    """To act on the jobs of all VOs, and to administer shares, limits, sites and dead letters."""
    GENERIC_PILOT = "generic_pilot"
    """For a pilot: to run the jobs of any group of its VO."""


class Principal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user, service, pilot, site or payload whose token was verified. It is never made from the body of a message."""

    kind: PrincipalKind
    owner: GivenName
    """The subject of the token, with the issuer's name if that is another system. Of a pilot: whose jobs it was sent for."""
    group: Name
    vo: Name
    rights: NameSet = frozenset()
    pilot_id: PilotName | None = None
    site: Name | None = None
    ce: Name | None = None
    job_id: JobId | None = None
    """Of a pilot: the one job that it may be given, None for any jobs. Of a payload: its job. None for others."""
    epoch: EpochNumber | None = None
    """Of a payload: the epoch of its attempt. None for others."""
    sites: NameSet = frozenset()
    """The sites for which the bearer may publish ads, as names or patterns such as `*.example.org`."""
    certificate_subject: Subject = ""
    fqans: Fqans = ()
    shares_jobs: bool = False
    """Whether members of the group may act on each other's jobs. The group's setting says so, never a token."""
    actions: NameSet | None = None
    """The only actions that the token permits, if its capabilities limit them; None if only group and rights do."""
    token_id: Name
    expires_at: Timestamp
    """When the token expires, in seconds since 1970."""

    @property
    def identity(self) -> Identity:
        """The owner, group and VO that jobs get which the principal submits."""
        return Identity(self.owner, self.group, self.vo)
