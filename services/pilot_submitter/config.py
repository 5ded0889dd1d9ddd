"""The configuration file of the pilot submitter."""

from typing import Annotated, Literal

import msgspec

from services.pilot_submitter.direct_trust import pattern_fault
from wms.bounds import Count, Line, Lines, LineTable
from wms.db.pilot import Link
from wms.provisioning.health import HealthPolicy
from wms.provisioning.plan import Choice
from wms.runtime.config import Seconds, Section, ServiceConfig
from wms.transfer.movers import TransferSettings
from wms.transfer.s3_settings import S3Settings


class PilotFactorySettings(Section, frozen=True, kw_only=True):
    """How many pilots are sent, how they are chosen, and the time limits and files that they get."""

    directory: Line
    """The directory in which each pilot of this machine has a directory of its own."""
    keys: Line
    """The directory with the private key that signs pilots' tokens (`pilots.pem`)."""
    local_sites: Lines = []
    """Names or patterns of sites whose local elements are this machine. For other sites no pilot runs here, whatever an ad says."""
    lifeline: Line = ""
    """A lock file on this machine. Pilots here end once no process holds its lock. Empty: none."""
    isolation: Literal["auto", "required", "none"] = "auto"
    """Whether payloads run in Linux namespaces of their own: `auto` where the node allows it, `required`, or `none`.

    It holds for pilots on this machine, too: with the link `gateway` they see no keys, no other pilots and no other processes.
    Where root starts them, they run under an account of their own.
    """
    cgroups: Literal["auto", "none"] = "auto"
    """Whether each payload gets a cgroup with its limits: `auto` where the node delegates cgroups of version 2, or `none`."""
    hidden: Lines = []
    """Directories that payloads in namespaces see as empty; the directories of pilots and of the sandbox store always are."""
    direct_trusted: Lines = []
    """Whose jobs with `dispatch = "direct"` run on this machine, as `VO/GROUP/OWNER`, each a name or a pattern. Empty: nobody's.

    No sandbox holds these jobs: they run as the account of this service.
    """
    agent_file: Line = ""
    """A file with the job agent (the program that a pilot runs) for pilots on this machine; empty: they run that of this installation."""
    python: Line = "python3"
    """The command for Python that runs `agent_file` on this machine."""
    sandboxes_url: Line = ""
    """The address of a gateway (`https://HOST:PORT`) through which pilots reach the sandbox store.

    Empty: that in `[gateway]` for pilots with the link `gateway`, and the URL in `[sandboxes]` for others.
    """
    sandboxes_authorities: Line = ""
    """A PEM file with the authorities that vouch for the certificate of the gateway in `sandboxes_url`. It is sent to pilots.

    Empty: they use those of their nodes.
    """
    most: Count = 16
    """The most pilots alive at a time, over all computing elements. At the limit no more are sent."""
    plan_every_seconds: Seconds = 1.0
    choice: Choice = "room"
    """How an element is chosen among those that a job fits: `room`, by their room for pilots, or at random, as SAM-Grid's broker does."""
    idle_seconds: Seconds = 20.0
    grace_seconds: Seconds = 3.0
    """Seconds that running jobs have to end by themselves when their pilot must end; after them they get SIGTERM."""
    stop_seconds: Seconds = 25.0
    """Seconds after which all payloads of a pilot are killed that must end. Batch systems must wait longer before they kill the pilot.

    Slurm (`KillWait`) waits 30 s unless it is told otherwise.
    """
    grace_most_seconds: Seconds = 300.0
    """The most seconds from SIGTERM to SIGKILL that a job gets when it is ended, whatever its `grace_time`."""
    token_seconds: Seconds = 14_400.0
    """Seconds for which a pilot's token is valid. A living pilot is sent a new token in the second half of that time."""
    link: Link = "kafka"
    """How pilots reach the services: `kafka` (the broker itself), or `gateway` (HTTPS, by the address in `[gateway]`).

    Pilots on this machine that use `kafka` are not confined.
    """
    secret_seconds: Seconds = 1_209_600.0
    """Seconds in which a pilot that waits in a batch system must start and exchange its one-time secret. After them the secret is invalid."""
    lifetime_seconds: Seconds = 1_209_600.0
    silent_seconds: Seconds = 60.0
    """Seconds of silence of a pilot after which its element's report that it is lost is believed. Until then the report is ignored.

    Half a lease: longer than between two renewals of a lease, and short enough to be known when the lease ends.
    """
    given_up_seconds: Seconds = 1_200.0
    """Seconds of silence after which a pilot counts as lost, though its element lists it as running. It is cancelled once its leases are over.

    Longer than a job agent goes on without answers (900 s).
    """
    lingering_seconds: Seconds = 120.0
    """Seconds after a pilot's end or loss. If its element still lists the pilot as alive then, the pilot is cancelled."""


class PilotSandboxSettings(Section, frozen=True, kw_only=True):
    """Where the sandbox store is (files that go with jobs, or that they leave). Pilots read and write a directory themselves."""

    url: Line
    """`file:///absolute/directory` or `s3://bucket/prefix`. Pilots reach S3 through a gateway: then `sandboxes_url` in `[pilots]` is needed."""
    s3: S3Settings = S3Settings()
    """The S3 server of a store with an `s3:` URL. Its credentials are not sent to pilots."""


class PilotGatewaySettings(Section, frozen=True, kw_only=True):
    """The gateway: an HTTPS server through which pilots with the link `gateway` reach the services."""

    url: Line = ""
    """The address of the gateway, `https://HOST:PORT`, as the nodes reach it."""
    authorities: Line = ""
    """A PEM file with the authorities that vouch for the gateway's certificate. It is sent to pilots. Empty: they use those of their nodes."""


class MappingScriptSettings(Section, frozen=True, kw_only=True):
    """A site's script that maps jobs' requirements on hosts to options of the batch system, where rules are not enough.

    It runs in a sandbox (bubblewrap), with `/usr` and the paths that are named here.
    """

    path: Line
    """The script's file; everybody must be allowed to read and run it."""
    attributes: Annotated[list[Line], msgspec.Meta(min_length=1, max_length=100)]
    """The host attributes that the script maps. No rule may be for them; built-in rules for them are not used."""
    options: Annotated[list[Line], msgspec.Meta(max_length=100)]
    """The options of the batch system that the script may return, such as `["--constraint", "--tmp"]`."""
    reads: Annotated[list[Line], msgspec.Meta(max_length=100)] = []
    """Files and directories outside of `/usr` that the script reads, such as a table of nodes or an interpreter."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=8)] = 5.0
    """How long the script may take for one question, in seconds. After that it is killed, which counts as a failure."""


class ElementSettings(Section, frozen=True, kw_only=True):
    """A computing element that is reached through a batch system or another middleware, and what its pilots request there."""

    site: Line
    ce: Line
    agent: Lines = []
    """The command that starts a job agent on the element's nodes; empty: as on this machine, with this Python."""
    agent_file: Line = ""
    """A file of this machine with the job agent, which is sent with each pilot in place of the command `agent`; empty: none.

    `python -m deploy.agent_file` builds it. The nodes need Python 3.11 or later and nothing else.
    """
    python: Line = "python3"
    """The command for Python that runs `agent_file` on the nodes."""
    sandboxes_url: Line = ""
    """The URL of the sandbox store for pilots there, or of a gateway (`https://HOST:PORT`); empty: that of `[pilots]`."""
    sandboxes_authorities: Line = ""
    """A PEM file with the authorities that vouch for the certificate of the gateway in `sandboxes_url`. It is sent to pilots.

    Empty: they use those of their nodes.
    """
    link: Link | Literal[""] = ""
    """How pilots there reach the services, `kafka` or `gateway`; empty: as `link` in `[pilots]`."""
    lifetime_seconds: Seconds = 86_400.0
    """Seconds after its start at which a pilot takes no more jobs."""
    drain_seconds: Seconds = 3_600.0
    """Seconds that running jobs have after `lifetime_seconds` until the wall time that their pilot requested is over.

    That wall time is the sum of both settings.
    """
    follow_every_seconds: Seconds = 10.0
    mapping: LineTable = {}
    """Rules for requesting hosts by jobs' requirements, which override built-in ones.

    Each maps an attribute of hosts to an option of the batch system, such as the attribute
    `GlueHostApplicationSoftwareRunTimeEnvironment` to `"--constraint={value}"`.
    """
    mapping_script: MappingScriptSettings | None = None
    direct_trusted: Lines = []
    """Whose jobs with `dispatch = "direct"` are sent there, as `VO/GROUP/OWNER`, each a name or a pattern. Empty: nobody's.

    No sandbox holds these jobs: they run as the account as which the batch system runs pilots.
    """
    transfers: TransferSettings | None = None
    """From which URLs jobs at this element may fetch inputs, and to which URLs their outputs may go; None: as `[transfers]` says for all elements."""
    software: Line = ""
    """A directory on the nodes whose entries name their runtime environments; empty: those of the element's ad."""
    attributes: LineTable = {}
    """Further options with which pilots are submitted, by name.

    They are options of `sbatch`, relations of xRSL for ARC, commands of HTCondor's submit description, resources (`-l`) and
    options (`"-W"`) of PBS's `qsub`, or options of LSF's `bsub`.
    """


class BatchSystemSettings(ElementSettings, frozen=True, kw_only=True):
    """A computing element whose batch system is reached by command-line tools on this machine."""

    tools: Line = ""
    """The directory of the batch system's tools, which goes before the PATH; empty: they are on the PATH."""


class SlurmSettings(BatchSystemSettings, frozen=True, kw_only=True):
    """A computing element that is a partition of a Slurm cluster whose tools are on this machine."""

    directory: Line
    """A directory on a file system that the cluster's nodes share; each pilot has a directory in it."""
    configuration: Line = ""
    """The path of slurm.conf; empty: the tools' default."""
    partition: Line = ""
    account: Line = ""
    constraint: Line = ""
    gres: Line = ""


class ArcSettings(ElementSettings, frozen=True, kw_only=True):
    """An ARC computing element with a REST interface. The service authenticates by a proxy certificate or a token.

    Both files may be replaced at any time.
    """

    url: Annotated[str, msgspec.Meta(pattern="^https://", max_length=4_096)]
    """The element's URL, such as `https://ce.example.org/arex`."""
    queue: Line = ""
    proxy: Line = ""
    """The file with the pilot submitter's proxy certificate, its key and its chain; empty: none."""
    token: Line = ""
    """The file with the pilot submitter's bearer token; empty: none."""
    authorities: Line = ""
    """The file with the certificates of trusted authorities; empty: those of this machine."""
    staging: bool = False
    """Whether the element stages data (`[arex/data-staging]` in its arc.conf), and so moves files by URL for jobs sent directly.

    It resolves names, follows redirections and shows credentials by its own rules.
    """


class HTCondorSettings(BatchSystemSettings, frozen=True, kw_only=True):
    """A computing element that is an HTCondor pool, reached by its tools on this machine."""

    directory: Line
    """A directory with a subdirectory for each pilot. HTCondor transfers the files of a pilot's subdirectory to the node and back."""
    pool: Line = ""
    """The address of the pool's collector; empty: the tools' default."""
    schedd: Line = ""
    """The name of the schedd (job queue); empty: that of this machine."""
    constraint: Line = ""
    """An expression that machines must satisfy (`requirements`); empty: none."""


class PbsSettings(BatchSystemSettings, frozen=True, kw_only=True):
    """A computing element that is a queue of a PBS server whose tools are on this machine."""

    directory: Line
    """A directory, with a subdirectory for each pilot, on a file system that the nodes share. Its path has letters, digits and `_.+/-` only."""
    flavour: Literal["torque", "pbspro"] = "torque"
    """How nodes are requested: by `-l nodes=1:ppn=N` (torque), or by `-l select=1:ncpus=N` (PBS Pro, OpenPBS)."""
    server: Line = ""
    """The name of the PBS server; empty: the tools' default."""
    queue: Line = ""
    account: Line = ""
    name_length: Annotated[int, msgspec.Meta(ge=15, le=230)] = 230
    """The most characters that the server accepts in a job's name."""
    constraint: Line = ""
    """Properties of the node (`bigmem:ib`), or resources of the chunk (`bigmem=true`), that pilots request; empty: none."""


class LsfSettings(BatchSystemSettings, frozen=True, kw_only=True):
    """A computing element that is a queue of an LSF cluster whose tools are on this machine."""

    directory: Line
    """A directory, with a subdirectory for each pilot, on a file system that the nodes share."""
    configuration: Line = ""
    """The directory of lsf.conf; empty: the tools' default."""
    queue: Line = ""
    project: Line = ""
    constraint: Line = ""
    """An expression that hosts must satisfy, in `select[]`; empty: none."""
    resources: Line = ""
    """Resources that pilots reserve besides memory, in `rusage[]`, separated by commas; empty: none."""


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole configuration file of the pilot submitter."""

    pilots: PilotFactorySettings
    sandboxes: PilotSandboxSettings
    gateway: PilotGatewaySettings = PilotGatewaySettings()
    health: HealthPolicy = HealthPolicy()
    transfers: TransferSettings = TransferSettings()
    """Which URLs jobs' inputs may be fetched from, and which their outputs may go to, at this service's sites."""
    slurm: Annotated[list[SlurmSettings], msgspec.Meta(max_length=10_000)] = []
    arc: Annotated[list[ArcSettings], msgspec.Meta(max_length=10_000)] = []
    htcondor: Annotated[list[HTCondorSettings], msgspec.Meta(max_length=10_000)] = []
    pbs: Annotated[list[PbsSettings], msgspec.Meta(max_length=10_000)] = []
    lsf: Annotated[list[LsfSettings], msgspec.Meta(max_length=10_000)] = []

    def __post_init__(self) -> None:
        elements = [*self.slurm, *self.arc, *self.htcondor, *self.pbs, *self.lsf]
        trusted = [self.pilots.direct_trusted, *(each.direct_trusted for each in elements)]
        for pattern in (one for each in trusted for one in each):
            if fault := pattern_fault(pattern):
                raise ValueError(fault)
        if not self.gateway.url and "gateway" in (self.pilots.link, *(each.link for each in elements)):
            raise ValueError("pilots are to use a gateway, and `url` in [gateway] is empty")
        over_kafka = "kafka" in (each.link or self.pilots.link for each in elements)
        over_kafka = over_kafka or self.pilots.link == "kafka"
        if self.sandboxes.url.startswith("s3:") and over_kafka and not self.pilots.sandboxes_url:
            raise ValueError(
                "pilots reach no S3: set `sandboxes_url` in [pilots] to the address of a gateway"
            )
