"""The configuration of the agreement service."""

from typing import Annotated, Literal

from msgspec import Meta

from wms.agreement.quota import VoQuota
from wms.agreement.template import AgreementTemplate
from wms.bounds import GivenName, Line, Name
from wms.runtime.config import Seconds, Section, ServiceConfig


class AgreementSettings(Section, frozen=True, kw_only=True):
    """The site, and how long things may take."""

    site: GivenName = "local"
    grace_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    """A confirmed reservation that nobody uses is released so long after its start."""
    turn_seconds: Annotated[float, Meta(ge=1, le=3_600)] = 5.0
    """Seconds after which another instance may decide for an element whose decider is silent; less than the broker waits."""
    reconcile_seconds: Seconds = 10.0
    """Seconds between two comparisons with the lists of batch systems."""
    kept_days: Annotated[float, Meta(gt=0, le=3_660)] = 30.0
    """Days for which agreements are kept after their end."""


class SlurmReservations(Section, frozen=True, kw_only=True):
    """Reservations of a Slurm cluster; the service's account must be an operator of the cluster."""

    configuration: Line = ""
    """Path of slurm.conf; empty: Slurm's own."""
    directory: Line = ""
    """Where its tools are; empty: on the PATH."""
    partition: GivenName = "main"
    users: Annotated[tuple[GivenName, ...], Meta(min_length=1, max_length=100)] = ("root",)
    """The accounts that pilots run as: they alone may use the reservations."""
    prefix: Annotated[str, Meta(max_length=40, pattern="^[A-Za-z][A-Za-z0-9]*$")] = "wms"
    """The begin of the names of this system's reservations. Those without a living agreement are removed: no one else may use it."""


class SiteScript(Section, frozen=True, kw_only=True):
    """A program of the site's that decides: one JSON object on its standard input, one on its standard output."""

    program: Line = ""
    """Its path; it is run with the rights of the service, and without a shell."""
    seconds: Annotated[float, Meta(gt=0, le=60)] = 10.0
    """Seconds after which it is killed."""


class ReservableSettings(Section, frozen=True, kw_only=True):
    """A computing element on which reservations are made.

    `slurm`: reservations of a Slurm cluster. `calendar`: a calendar of the element's slots, for elements that cannot reserve.
    `script`: a program of the site's.
    """

    ce: GivenName = "local"
    kind: Literal["calendar", "slurm", "script"] = "calendar"
    cpus: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """The CPUs that may be reserved at a time; 0: as the cluster says, or as many slots as the element's ad."""
    template: AgreementTemplate = AgreementTemplate()
    slurm: SlurmReservations = SlurmReservations()
    script: SiteScript = SiteScript()

    def __post_init__(self) -> None:
        if self.kind == "script" and not (self.script.program.startswith("/") and self.cpus):
            raise ValueError(f"{self.ce}: a script needs `cpus`, and `program` with its whole path")


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    agreement: AgreementSettings = AgreementSettings()
    elements: Annotated[tuple[ReservableSettings, ...], Meta(max_length=1_000)] = ()
    quotas: Annotated[dict[Name, VoQuota], Meta(max_length=10_000)] = {}
    """The most that each VO may have reserved at the site; `*` is for the others."""

    def __post_init__(self) -> None:
        names = [each.ce for each in self.elements]
        if len(set(names)) < len(names):
            raise ValueError("two elements have one name")
