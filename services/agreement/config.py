"""The configuration file of the agreement service."""

from typing import Annotated, Literal

from msgspec import Meta

from wms.agreement.quota import VoQuota
from wms.agreement.template import AgreementTemplate
from wms.bounds import GivenName, Line, Name
from wms.runtime.config import Seconds, Section, ServiceConfig


class AgreementSettings(Section, frozen=True, kw_only=True):
    """The site for which the service decides on agreements (reservations of CPUs for jobs), and the service's time limits."""

    site: GivenName = "local"
    grace_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    """How long a confirmed reservation may stay unused after its start, in seconds. After that it is released."""
    turn_seconds: Annotated[float, Meta(ge=1, le=3_600)] = 5.0
    """Seconds of silence after which another instance may decide in place of the one that decides for an element.

    Shorter than the time for which the resource broker waits for a decision.
    """
    reconcile_seconds: Seconds = 10.0
    """Seconds between two comparisons of agreements with the reservations that batch systems list."""
    kept_days: Annotated[float, Meta(gt=0, le=3_660)] = 30.0
    """Days for which agreements are kept in the database after their end."""


class SlurmReservations(Section, frozen=True, kw_only=True):
    """How reservations are made on a Slurm cluster; the service's account must be an operator of the cluster."""

    configuration: Line = ""
    """The path of slurm.conf; empty: Slurm's default."""
    directory: Line = ""
    """The directory of Slurm's tools; empty: they are on the PATH."""
    partition: GivenName = "main"
    users: Annotated[tuple[GivenName, ...], Meta(min_length=1, max_length=100)] = ("root",)
    """The accounts under which pilots run; only they may use the reservations."""
    prefix: Annotated[str, Meta(max_length=40, pattern="^[A-Za-z][A-Za-z0-9]*$")] = "wms"
    """The first part of the names of this system's reservations. Slurm reservations with it and without a living agreement are deleted."""


class SiteScript(Section, frozen=True, kw_only=True):
    """A site's own program that decides on offers. For each question it reads a JSON object from standard input, and prints one."""

    program: Line = ""
    """The program's absolute path. It runs with the rights of the service, and without a shell."""
    seconds: Annotated[float, Meta(gt=0, le=60)] = 10.0
    """How long the program may take for one question, in seconds. After that it is killed, and the question is asked again later."""


class ReservableSettings(Section, frozen=True, kw_only=True):
    """A computing element on which the service makes reservations.

    `kind` says where they are held. `slurm`: in a Slurm cluster. `script`: by a program of the site. `calendar`: in the
    database alone, for elements whose batch system makes no reservations.
    """

    ce: GivenName = "local"
    kind: Literal["calendar", "slurm", "script"] = "calendar"
    cpus: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """The most CPUs that may be reserved at a time. 0: as many as the cluster has, or as the element's ad has slots."""
    owner_share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    """The share of the element's CPUs that one user's reservations may hold at a time, while others ask for it. 1: all.

    A program of the site's (`script`) decides on that itself.
    """
    template: AgreementTemplate = AgreementTemplate()
    slurm: SlurmReservations = SlurmReservations()
    script: SiteScript = SiteScript()

    def __post_init__(self) -> None:
        if self.kind == "script" and not (self.script.program.startswith("/") and self.cpus):
            raise ValueError(f"{self.ce}: a script needs `cpus`, and `program` with its whole path")


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole configuration file of the agreement service."""

    agreement: AgreementSettings = AgreementSettings()
    elements: Annotated[tuple[ReservableSettings, ...], Meta(max_length=1_000)] = ()
    quotas: Annotated[dict[Name, VoQuota], Meta(max_length=10_000)] = {}
    """The most that each VO may have reserved at the site, by VO name; `*` is for all other VOs."""

    def __post_init__(self) -> None:
        names = [each.ce for each in self.elements]
        if len(set(names)) < len(names):
            raise ValueError("two elements have one name")
