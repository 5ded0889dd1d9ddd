"""The configuration of the pilot submitter."""

from typing import Annotated, Literal

import msgspec

from wms.bounds import Count, Line, Lines, LineTable
from wms.provisioning.health import HealthPolicy
from wms.provisioning.plan import Choice
from wms.runtime.config import Seconds, Section, ServiceConfig
from wms.transfer.movers import TransferSettings


class PilotFactorySettings(Section, frozen=True, kw_only=True):
    """How many pilots are made, and how."""

    directory: Line
    """Below it every pilot of this machine has a directory."""
    keys: Line
    """The directory with the key that signs pilots' tokens."""
    local_sites: Lines = []
    """Names or patterns of sites whose local elements are this machine. For other sites no pilot runs here, whatever an ad says."""
    lifeline: Line = ""
    """The lock file of a system on this machine; its pilots end when its holder does."""
    system: Line = ""
    """The name that marks pilots of this system, also of earlier runs."""
    isolation: Literal["auto", "required", "none"] = "auto"
    """Whether payloads run in namespaces of their own: `auto` where their node allows it, `required` or `none`."""
    hidden: Lines = []
    """Directories that are empty for payloads in namespaces, beside the pilot's and the sandbox store's."""
    most: Count = 16
    """The most pilots at a time, over all elements."""
    plan_every_seconds: Seconds = 1.0
    choice: Choice = "room"
    """How an element is chosen among those that a job fits: by their room, or at random, as SAM-Grid's broker does."""
    idle_seconds: Seconds = 20.0
    grace_seconds: Seconds = 3.0
    """Seconds that running jobs have when their pilot is told to end."""
    token_seconds: Seconds = 14_400.0
    """The life of a pilot's token. A living pilot gets a new one in the second half of it."""
    lifetime_seconds: Seconds = 1_209_600.0
    silent_seconds: Seconds = 60.0
    """An element's report that it lost a pilot counts once the pilot itself has been silent for so long.

    Half a lease: longer than between two renewals, and short enough to be known when the lease ends.
    """
    given_up_seconds: Seconds = 1_200.0
    """A pilot that is listed as running and silent for so long counts as lost. It is cancelled once its leases are over.

    Longer than an agent without answers goes on (900 s).
    """
    lingering_seconds: Seconds = 120.0
    """A pilot that ended or was lost, and that its element lists for so long after that, is cancelled."""


class PilotSandboxSettings(Section, frozen=True, kw_only=True):
    """The sandbox store, as pilots see it."""

    url: Line


class MappingScriptSettings(Section, frozen=True, kw_only=True):
    """A site's script that maps jobs' requirements on hosts to options of the batch system, where rules are not enough.

    It runs in a sandbox (bubblewrap), with `/usr` and the paths that are named here.
    """

    path: Line
    """The file, which everybody may read and run."""
    attributes: Annotated[list[Line], msgspec.Meta(min_length=1, max_length=100)]
    """The attributes of hosts that it maps. No rule may be for them; built-in rules for them are not used."""
    options: Annotated[list[Line], msgspec.Meta(max_length=100)]
    """The options that it may return: `["--constraint", "--tmp"]`."""
    reads: Annotated[list[Line], msgspec.Meta(max_length=100)] = []
    """Files and directories outside `/usr` that it reads, such as a table of nodes or an interpreter."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=8)] = 5.0
    """Seconds after which it is killed."""


class ElementSettings(Section, frozen=True, kw_only=True):
    """One computing element behind a middleware: its name, and what pilots ask for there."""

    site: Line
    ce: Line
    agent: Lines = []
    """The command that starts a job agent there; empty: as on this machine, with this Python."""
    sandboxes_url: Line = ""
    """The sandbox store, as pilots there see it; empty: that of `[sandboxes]`."""
    lifetime_seconds: Seconds = 86_400.0
    """Seconds after which a pilot takes no more jobs."""
    drain_seconds: Seconds = 3_600.0
    """Seconds that its jobs then have before the element ends them. The requested wall time is the sum of both."""
    follow_every_seconds: Seconds = 10.0
    mapping: LineTable = {}
    """Rules for requesting hosts by jobs' requirements, which override built-in ones: an attribute and an option,
    `GlueHostApplicationSoftwareRunTimeEnvironment = "--constraint={value}"`.
    """
    mapping_script: MappingScriptSettings | None = None
    software: Line = ""
    """A directory on the nodes whose entries are the names of their runtime environments; empty: those of the element's ad."""
    attributes: LineTable = {}
    """Further options of the middleware: of `sbatch`, relations of xRSL for ARC, commands of HTCondor's submit
    description, resources (`-l`) and options (`"-W"`) of PBS's `qsub`, options of LSF's `bsub`.
    """


class SlurmSettings(ElementSettings, frozen=True, kw_only=True):
    """An element that is a partition of a Slurm cluster whose tools run here."""

    directory: Line
    """On a file system that the cluster shares: a directory for each pilot."""
    configuration: Line = ""
    """The slurm.conf; empty: the tools' default."""
    partition: Line = ""
    account: Line = ""
    constraint: Line = ""
    gres: Line = ""


class ArcSettings(ElementSettings, frozen=True, kw_only=True):
    """An ARC element with its REST interface. It identifies us by a proxy or a token; both may be renewed at any time."""

    url: Annotated[str, msgspec.Meta(pattern="^https://", max_length=4_096)]
    """As in `https://ce.example.org/arex`."""
    queue: Line = ""
    proxy: Line = ""
    """A file with certificate, key and chain."""
    token: Line = ""
    """A file with a bearer token."""
    authorities: Line = ""
    """A file with the certificates of authorities that are trusted; empty: those of this machine."""


class HTCondorSettings(ElementSettings, frozen=True, kw_only=True):
    """An element that is an HTCondor pool, by its tools on this machine."""

    directory: Line
    """A directory for each pilot; HTCondor carries its files to the node and back."""
    pool: Line = ""
    """The collector; empty: the tools' default."""
    schedd: Line = ""
    """The name of the queue; empty: that of this machine."""
    constraint: Line = ""
    """An expression that machines must satisfy (`requirements`)."""


class PbsSettings(ElementSettings, frozen=True, kw_only=True):
    """An element that is a queue of a PBS server, whose tools run here."""

    directory: Line
    """On a file system that the nodes share: a directory for each pilot; letters, digits and `_.+/-` in its path."""
    flavour: Literal["torque", "pbspro"] = "torque"
    """How nodes are asked for: by `-l nodes=1:ppn=N`, or by `-l select=1:ncpus=N` (PBS Pro, OpenPBS)."""
    server: Line = ""
    """Empty: the tools' default."""
    queue: Line = ""
    account: Line = ""
    name_length: Annotated[int, msgspec.Meta(ge=15, le=230)] = 230
    """The most characters of a job's name at the server."""
    constraint: Line = ""
    """Properties of the node (`bigmem:ib`), or resources of the chunk (`bigmem=true`)."""


class LsfSettings(ElementSettings, frozen=True, kw_only=True):
    """An element that is a queue of an LSF cluster, whose tools run here."""

    directory: Line
    """On a file system that the nodes share: a directory for each pilot."""
    configuration: Line = ""
    """The directory of lsf.conf; empty: the tools' default."""
    queue: Line = ""
    project: Line = ""
    constraint: Line = ""
    """An expression for hosts in `select[]`."""
    resources: Line = ""
    """Reserved resources beside memory, in `rusage[]`, separated by commas."""


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    pilots: PilotFactorySettings
    sandboxes: PilotSandboxSettings
    health: HealthPolicy = HealthPolicy()
    transfers: TransferSettings = TransferSettings()
    """Where jobs' inputs by URL may come from and their outputs go, at the sites to which this service sends pilots."""
    slurm: Annotated[list[SlurmSettings], msgspec.Meta(max_length=10_000)] = []
    arc: Annotated[list[ArcSettings], msgspec.Meta(max_length=10_000)] = []
    htcondor: Annotated[list[HTCondorSettings], msgspec.Meta(max_length=10_000)] = []
    pbs: Annotated[list[PbsSettings], msgspec.Meta(max_length=10_000)] = []
    lsf: Annotated[list[LsfSettings], msgspec.Meta(max_length=10_000)] = []
