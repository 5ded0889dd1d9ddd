"""What the pilot submitter is told."""

from typing import Annotated, Literal

import msgspec

from wms.bounds import Count, Line, Lines, LineTable
from wms.provisioning.health import HealthPolicy
from wms.provisioning.plan import Choice
from wms.runtime.config import Seconds, Section, ServiceConfig


class PilotFactorySettings(Section, frozen=True, kw_only=True):
    """How pilots are made and how many."""

    directory: Line
    """Below it every pilot of this machine has a directory."""
    keys: Line
    """The directory with the key that signs pilots' tokens."""
    local_sites: Lines = []
    """The sites whose local elements are this machine, by name or pattern: pilots run here for no other, whatever an ad says."""
    lifeline: Line = ""
    """The lock file of a system on this machine, with which its pilots end."""
    system: Line = ""
    """The name by which leftovers of an earlier life of this system are known."""
    isolation: Literal["auto", "required", "none"] = "auto"
    """Whether payloads run in namespaces of their own: where their node allows it, always, or never."""
    hidden: Lines = []
    """Directories that payloads in namespaces of their own find empty, beside the pilot's and the sandbox store's."""
    most: Count = 16
    """Pilots at a time, over all elements."""
    plan_every_seconds: Seconds = 1.0
    choice: Choice = "room"
    """How an element is chosen among those that a job fits: by the room that each has, or at random, as SAM-Grid's broker does."""
    idle_seconds: Seconds = 20.0
    grace_seconds: Seconds = 3.0
    """What a pilot that is told to end leaves its running jobs."""
    token_seconds: Seconds = 14_400.0
    """A pilot's token is good for so long; it gets a new one when half of that is over, for as long as it lives."""
    lifetime_seconds: Seconds = 1_209_600.0
    silent_seconds: Seconds = 60.0
    """An element's word that it lost a pilot from sight counts only once the pilot has been silent for so long itself.

    Half a lease: longer than between two renewals, and short enough to be known when the lease runs out.
    """
    given_up_seconds: Seconds = 1_200.0
    """A pilot that its element lists as running and that says nothing for so long is lost from sight, and is cancelled there
    once its leases are over. Longer than an agent that hears nothing goes on (900 s).
    """
    lingering_seconds: Seconds = 120.0
    """A pilot that has ended, or was lost from sight, and that its element lists for so long after it is cancelled there."""


class PilotSandboxSettings(Section, frozen=True, kw_only=True):
    """Where sandboxes are, as pilots see it."""

    url: Line


class MappingScriptSettings(Section, frozen=True, kw_only=True):
    """A script of the site's own that maps what jobs require of hosts to options of the batch system, where rules are not enough.

    It runs in a sandbox (bubblewrap), which sees `/usr` and what is named here.
    """

    path: Line
    """The file; everybody may read and run it."""
    attributes: Annotated[list[Line], msgspec.Meta(min_length=1, max_length=100)]
    """The attributes of hosts that it is asked about. No rule may be for them; built-in ones give way."""
    options: Annotated[list[Line], msgspec.Meta(max_length=100)]
    """The options that it may give: `["--constraint", "--tmp"]`."""
    reads: Annotated[list[Line], msgspec.Meta(max_length=100)] = []
    """Files and directories outside `/usr` that it reads: a table of nodes, an interpreter."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=8)] = 5.0
    """After so long it is killed."""


class ElementSettings(Section, frozen=True, kw_only=True):
    """One computing element that is reached through a middleware: its name, and what pilots ask for there."""

    site: Line
    ce: Line
    agent: Lines = []
    """How a job agent is started there; empty: as on this machine, by this Python."""
    sandboxes_url: Line = ""
    """The store, as pilots there see it; empty: as in `[sandboxes]`."""
    lifetime_seconds: Seconds = 86_400.0
    """After so long a pilot takes no more jobs."""
    drain_seconds: Seconds = 3_600.0
    """What its jobs then have left before the element ends them: the wall time asked for is the sum of the two."""
    follow_every_seconds: Seconds = 10.0
    mapping: LineTable = {}
    """Rules by which what jobs require of hosts is asked for, above the built-in ones: an attribute and an option,
    `GlueHostApplicationSoftwareRunTimeEnvironment = "--constraint={value}"`."""
    mapping_script: MappingScriptSettings | None = None
    software: Line = ""
    """A directory on the nodes whose entries are the names of their runtime environments; empty: as the element's ad says."""
    attributes: LineTable = {}
    """Options of the middleware's own: of `sbatch`, relations of xRSL for ARC, commands of HTCondor's submit description,
    resources (`-l`) and options (`"-W"`) of PBS's `qsub`, options of LSF's `bsub`."""


class SlurmSettings(ElementSettings, frozen=True, kw_only=True):
    """An element that is a partition of a Slurm cluster whose tools run here."""

    directory: Line
    """On a file system that the cluster shares: a directory for each pilot."""
    configuration: Line = ""
    """The slurm.conf; empty: what the tools find by themselves."""
    partition: Line = ""
    account: Line = ""
    constraint: Line = ""
    gres: Line = ""


class ArcSettings(ElementSettings, frozen=True, kw_only=True):
    """An ARC element with its REST interface. It knows us by a proxy or a token; both may be renewed at any time."""

    url: Annotated[str, msgspec.Meta(pattern="^https://", max_length=4_096)]
    """As in `https://ce.example.org/arex`."""
    queue: Line = ""
    proxy: Line = ""
    """A file with certificate, key and chain."""
    token: Line = ""
    """A file with a bearer token."""
    authorities: Line = ""
    """A file of certificates that may vouch for the element; empty: whom this machine trusts."""


class HTCondorSettings(ElementSettings, frozen=True, kw_only=True):
    """An element that is an HTCondor pool, by its tools, which run here."""

    directory: Line
    """A directory for each pilot; HTCondor carries its files to the node and back."""
    pool: Line = ""
    """The collector; empty: what the tools find by themselves."""
    schedd: Line = ""
    """The name of the queue; empty: the one of this machine."""
    constraint: Line = ""
    """An expression that machines must satisfy (`requirements`)."""


class PbsSettings(ElementSettings, frozen=True, kw_only=True):
    """An element that is a queue of a PBS server, whose tools run here."""

    directory: Line
    """On a file system that the nodes share: a directory for each pilot; letters, digits and `_.+/-` in its path."""
    flavour: Literal["torque", "pbspro"] = "torque"
    """How nodes are asked for: by `-l nodes=1:ppn=N`, or by `-l select=1:ncpus=N` (PBS Pro, OpenPBS)."""
    server: Line = ""
    """Empty: what the tools find by themselves."""
    queue: Line = ""
    account: Line = ""
    name_length: Annotated[int, msgspec.Meta(ge=15, le=230)] = 230
    """Characters of a job's name that the server takes."""
    constraint: Line = ""
    """Of the node: properties (`bigmem:ib`), or resources of the chunk (`bigmem=true`)."""


class LsfSettings(ElementSettings, frozen=True, kw_only=True):
    """An element that is a queue of an LSF cluster, whose tools run here."""

    directory: Line
    """On a file system that the nodes share: a directory for each pilot."""
    configuration: Line = ""
    """The directory of lsf.conf; empty: what the tools find by themselves."""
    queue: Line = ""
    project: Line = ""
    constraint: Line = ""
    """What hosts must have: an expression of `select[]`."""
    resources: Line = ""
    """What is set aside there beside memory: of `rusage[]`, by commas."""


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    pilots: PilotFactorySettings
    sandboxes: PilotSandboxSettings
    health: HealthPolicy = HealthPolicy()
    slurm: Annotated[list[SlurmSettings], msgspec.Meta(max_length=10_000)] = []
    arc: Annotated[list[ArcSettings], msgspec.Meta(max_length=10_000)] = []
    htcondor: Annotated[list[HTCondorSettings], msgspec.Meta(max_length=10_000)] = []
    pbs: Annotated[list[PbsSettings], msgspec.Meta(max_length=10_000)] = []
    lsf: Annotated[list[LsfSettings], msgspec.Meta(max_length=10_000)] = []
