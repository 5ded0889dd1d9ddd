"""Who somebody is, as a verified token says it: the only source of owner, group and VO."""

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
"""As the site of a site's token: it may speak for all sites, as the one of a system on one machine does."""


ISSUER = "wms"
"""The issuer of this system's own tokens."""
NAME_MARK = "#"
"""Between the name of another issuer and that of its user; in no name of our own."""


def owner_of(issuer: str, subject: str) -> str:
    """Return by what name a token's bearer is known here: two issuers' users of one name are two users."""
    return subject if issuer == ISSUER else f"{issuer}{NAME_MARK}{subject}"


class Right(StrEnum):
    """What a group may grant its members; a token may carry others, which mean nothing here."""

    JOB_MONITOR = "job_monitor"
    """May see the jobs of the whole VO, without their details."""
    JOB_ADMINISTRATOR = "job_administrator"
    """May do with the jobs of the whole VO what their owners may, and sets its groups' shares."""
    OPERATOR = "operator"
    """May do so with the jobs of all VOs, and administers the system: shares, limits, sites, dead letters."""
    GENERIC_PILOT = "generic_pilot"
    """A pilot that may run the jobs of any group of its VO."""


class Principal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user, service, pilot or site whose token was verified. Never made from a message's body."""

    kind: Kind
    owner: GivenName
    """By the token's subject, and its issuer if that is not our own; of a pilot, whose jobs it was sent for."""
    group: Name
    vo: Name
    rights: NameSet = frozenset()
    pilot_id: PilotName | None = None
    site: Name | None = None
    ce: Name | None = None
    sites: NameSet = frozenset()
    """Of who speaks for the sites that an index leads to: names, or patterns such as `*.example.org`."""
    certificate_subject: Subject = ""
    fqans: Fqans = ()
    shares_jobs: bool = False
    """Whether the group's members share their jobs, by the group's own setting: never said by a token."""
    token_id: Name
    expires_at: Timestamp
    """Seconds since 1970."""

    @property
    def identity(self) -> Identity:
        """Whose the jobs are that it submits."""
        return Identity(self.owner, self.group, self.vo)
