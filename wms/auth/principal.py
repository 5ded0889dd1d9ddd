"""Principals: who acts, as a verified token says. Owner, group and VO have no other source."""

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import GivenName, Name, NameSet, PilotName, Timestamp
from wms.ids import Identity

Kind: TypeAlias = Literal["user", "service", "pilot", "site"]

Subject: TypeAlias = Annotated[str, msgspec.Meta(max_length=1_000)]
"""The subject of a certificate: `/DC=org/DC=example/CN=Jane Doe`."""
Fqans: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=255)], ...], msgspec.Meta(max_length=32)
]
"""VOMS roles (fully qualified attribute names)."""

ANY_SITE = "*"
"""The site in the token of an advertiser that may speak for all sites, as that of a system on one machine does."""


ISSUER = "wms"
"""The issuer of this system's own tokens."""
NAME_MARK = "#"
"""Separates the name of another issuer from its user's name; our own names never have it."""


def owner_of(issuer: str, subject: str) -> str:
    """Return the owner that a token's bearer is here: users of one name at two issuers are two owners."""
    return subject if issuer == ISSUER else f"{issuer}{NAME_MARK}{subject}"


class Right(StrEnum):
    """The rights that a group may grant its members. Others in a token have no meaning here."""

    JOB_MONITOR = "job_monitor"
    """May see the jobs of the whole VO, without their details."""
    JOB_ADMINISTRATOR = "job_administrator"
    """May do with the jobs of the whole VO what their owners may, and sets its groups' shares."""
    OPERATOR = "operator"
    """May do so with the jobs of all VOs, and administers the system: shares, limits, sites, dead letters."""
    GENERIC_PILOT = "generic_pilot"
    """May, as a pilot, run the jobs of any group of its VO."""


class Principal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user, service, pilot or site whose token was verified. Never made from a message's body."""

    kind: Kind
    owner: GivenName
    """The token's subject, with its issuer if that is another; for a pilot, the owner whose jobs it was sent for."""
    group: Name
    vo: Name
    rights: NameSet = frozenset()
    pilot_id: PilotName | None = None
    site: Name | None = None
    ce: Name | None = None
    sites: NameSet = frozenset()
    """For the advertiser of an index: its sites, as names or patterns such as `*.example.org`."""
    certificate_subject: Subject = ""
    fqans: Fqans = ()
    shares_jobs: bool = False
    """Whether the group's members share their jobs. The group's own setting says so, never a token."""
    token_id: Name
    expires_at: Timestamp
    """Seconds since 1970."""

    @property
    def identity(self) -> Identity:
        """Owner, group and VO of the jobs that it submits."""
        return Identity(self.owner, self.group, self.vo)
