"""Principals: the sender of a request, as its verified token names it. Owner, group and VO of jobs come from it alone."""

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import EpochNumber, GivenName, Name, NameSet, PilotName, Timestamp
from wms.ids import Identity, JobId

Kind: TypeAlias = Literal["user", "service", "pilot", "site"]
"""The kinds of token bearers whose tokens are signed with a private key."""
PrincipalKind: TypeAlias = Kind | Literal["payload"]
"""All kinds of token bearers. A payload's token is signed with a key derived from its pilot's key instead (see `payload_token`)."""

Subject: TypeAlias = Annotated[str, msgspec.Meta(max_length=1_000)]
"""The subject of a user's X.509 certificate, such as `/DC=org/DC=example/CN=Jane Doe`."""
Fqans: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=255)], ...], msgspec.Meta(max_length=32)
]
"""VOMS roles of a user (fully qualified attribute names), such as `/lhcb/Role=production`."""

ANY_SITE = "*"
"""The value of `site` in the token of an advertiser that may publish ads for all sites. A system on one machine uses it."""


ISSUER = "wms"
"""The issuer's name in this system's own tokens."""
NAME_MARK = "#"
"""The separator in the owner's name of another issuer's user: the issuer's name comes before it, the subject after it.

Names of this system's own users never contain it.
"""


def owner_of(issuer: str, subject: str) -> str:
    """Return the owner's name for the subject of an issuer's token: with the issuer's name before it, unless the issuer is this system.

    So equal subjects of two issuers become two owners.
    """
    return subject if issuer == ISSUER else f"{issuer}{NAME_MARK}{subject}"


class Right(StrEnum):
    """A right that a token may give its bearer, beside what every user may do. Unknown rights in a token are ignored."""

    JOB_MONITOR = "job_monitor"
    """Permits its bearer to see the jobs of the whole VO, without their details."""
    JOB_ADMINISTRATOR = "job_administrator"
    """Permits its bearer to act on the jobs of the whole VO as their owners may, and to set the shares of the VO's groups."""
    OPERATOR = "operator"
    """Permits its bearer to act on the jobs of all VOs, and to administer shares, limits, sites and dead letters.

    Dead letters are messages that a service could not process.
    """
    GENERIC_PILOT = "generic_pilot"
    """Permits a pilot to run the jobs of any group of its VO."""


class Principal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The user, service, pilot, site or payload whose token was verified. It is made from a token, never from the body of a message."""

    kind: PrincipalKind
    owner: GivenName
    """The subject of the token, after the issuer's name and `#` if another system issued it. Of a pilot: the owner for whose jobs it was sent."""
    group: Name
    vo: Name
    rights: NameSet = frozenset()
    pilot_id: PilotName | None = None
    site: Name | None = None
    ce: Name | None = None
    job_id: JobId | None = None
    """Of a pilot: the one job that it may be given, None for any jobs. Of a payload: its job. None for others."""
    epoch: EpochNumber | None = None
    """Of a payload: the epoch of its attempt, which is how often the job was given to a pilot. None for others."""
    sites: NameSet = frozenset()
    """The sites for which the bearer may publish ads, as names or patterns such as `*.example.org`."""
    certificate_subject: Subject = ""
    fqans: Fqans = ()
    shares_jobs: bool = False
    """Whether the principal's group lets its members act on each other's jobs. The group's setting says so, never a token."""
    actions: NameSet | None = None
    """The only actions that the token permits, if it has capabilities (scopes such as `compute.read`). None: only group and rights limit it."""
    token_id: Name
    expires_at: Timestamp
    """When the token expires, in seconds since 1970."""

    @property
    def identity(self) -> Identity:
        """The owner, group and VO of the jobs that the principal submits."""
        return Identity(self.owner, self.group, self.vo)
