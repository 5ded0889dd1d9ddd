"""The configuration file of the agreement service."""

from typing import Annotated, Literal

from msgspec import Meta

from wms.agreement.quota import VoQuota
from wms.agreement.template import AgreementTemplate
from wms.bounds import GivenName, Line, Name
from wms.runtime.config import Seconds, Section, ServiceConfig


class AgreementSettings(Section, frozen=True, kw_only=True):
    """The site whose agreements the service decides on, and its time limits."""

    site: GivenName = "local"
    grace_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    """Seconds after its start at which a confirmed reservation is released that nobody has used."""
    turn_seconds: Annotated[float, Meta(ge=1, le=3_600)] = 5.0
    """Seconds of silence of the instance that decides for an element, after which another instance may; less than the broker waits."""
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
    """How the names of this system's reservations begin. The service removes those without a living agreement: use it for
    nothing else."""


class SiteScript(Section, frozen=True, kw_only=True):
    """A site's own program that decides on offers. It reads one JSON object from standard input and prints one."""

    program: Line = ""
    """The program's absolute path. It runs with the rights of the service, and without a shell."""
    seconds: Annotated[float, Meta(gt=0, le=60)] = 10.0
    """Seconds after which the program is killed."""


class ReservableSettings(Section, frozen=True, kw_only=True):
    """A computing element on which the service makes reservations.

    `kind` says what holds them. `slurm`: a Slurm cluster. `script`: a program of the site's. `calendar`: the database alone, for
    elements that cannot reserve.
    """

    ce: GivenName = "local"
    kind: Literal["calendar", "slurm", "script"] = "calendar"
    cpus: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """The CPUs that may be reserved at a time; 0: as the cluster says, or the number of slots in the element's ad."""
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
