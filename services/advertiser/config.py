"""What the advertiser is told."""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import Count, Expression, Line, Lines, LineTable
from wms.messages.ads import Scalar
from wms.runtime.config import Seconds, Section, ServiceConfig

Lifetime: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class SiteStatement(Section, frozen=True, kw_only=True):
    """What whoever runs a site says of its elements; it goes before what is read there."""

    setup: Line = "default"
    slots: Count = 0
    """How many jobs at once; 0: as many as is read."""
    slots_per_pilot: Count = 0
    """0: as many as the element has, but not over eight."""
    memory_mb: Count = 0
    """Of this machine's slots together; of a pilot where the element is a batch system's. 0: as is read."""
    disk_mb: Count = 0
    """What a pilot's jobs have for their directories; 0: not told, pilots measure it."""
    grid_middleware: Line = ""
    """How jobs that choose their middleware name the way there; empty: as the dispatcher."""
    max_waiting_pilots: Count = 4
    max_pilots: Count = 0
    """0: as many as the slots feed."""
    max_jobs: Count = 0
    """Jobs at most, in any state, others' too where the source counts them; 0: no such limit."""
    max_submitting_jobs: Count = 0
    """Jobs at most that are being submitted; 0: no such limit."""
    tags: Lines = []
    required_tags: Lines = []
    """A job must ask for these, or it does not go there."""
    platforms: Lines = []
    """Empty: as is read."""
    submit_pools: Lines = []
    vos: Lines = []
    """Whose jobs it takes; empty: as is read, else everybody's."""
    stations: Lines = []
    """Names by which users choose where data is handled (SAM-Grid)."""
    entry_point: Line = ""
    """The grid's way in, a GRAM URL such as `ce.example.org:2119/jobmanager-pbs`; empty: as GLUE tells its contact."""
    monitoring_database: Line = ""
    """The URL of the database that jobs there send monitoring events to (SAM-Grid)."""
    applications: Lines = []
    """Software that is installed, as jobs ask for it; told besides what is read."""
    close_storage: LineTable = {}
    """Storage elements that are near, and the path where machines see each, empty if they do not."""
    benchmarks: Annotated[
        dict[Line, Annotated[float, msgspec.Meta(gt=0, le=1e9)]], msgspec.Meta(max_length=1_000)
    ] = {}
    """Results of a core: `HEPSPEC06`, `SI00`, `SF00`."""
    attributes: Annotated[
        dict[Line, Scalar | Annotated[list[Scalar], msgspec.Meta(max_length=10_000)]],
        msgspec.Meta(max_length=1_000),
    ] = {}
    """More that expressions may look at, by name."""
    requirements: Expression = ""
    """An expression that must be true of a job (`other`), with the limits on jobs above."""
    rank: Expression = ""
    """The greater it is, the rather the site has the job."""


class LocalElement(SiteStatement, frozen=True, kw_only=True):
    """One computing element of this machine: what is not said is read from the machine."""

    site: Line
    ce: Line = "local"
    max_cpu_time: Count = 864_000
    count_jobs: bool = True
    """Count jobs by the processes here, as `ps` does, for the ad's CurrentJobs."""


class BatchSettings(SiteStatement, frozen=True, kw_only=True):
    """The queues of a batch or information system: one element each, of the queue's name."""

    site: Line
    queues: Lines = []
    """Those that are advertised; empty: all. Queues over the same machines see the same free slots: name one of them."""
    names: LineTable = {}
    """What the element of a queue is called, where not as the queue."""
    dispatcher: Line = ""
    """How pilots are sent there; empty: by what the queue is read from."""
    max_cpu_time: Count = 0
    """Seconds; 0: as is read."""
    period_seconds: Seconds = 300.0
    look_seconds: Seconds = 60.0
    """How often it is looked at: what changes and matters is said at once."""
    lifetime_seconds: Lifetime = 900.0


class SlurmQueues(BatchSettings, frozen=True, kw_only=True):
    """The partitions of a Slurm cluster."""

    configuration: Line = ""
    """Path of slurm.conf; empty: Slurm's own."""
    directory: Line = ""
    """Where its tools are; empty: on the PATH."""
    users: Lines = []
    """Whose jobs the ad's CurrentJobs counts; empty: everybody's."""


class PbsQueues(BatchSettings, frozen=True, kw_only=True):
    """The execution queues of a PBS server, Torque's or PBS Pro's."""

    server: Line = ""
    """The server's host; empty: the default one of PBS's configuration."""
    directory: Line = ""
    """Where its tools are; empty: on the PATH."""


class LsfQueues(BatchSettings, frozen=True, kw_only=True):
    """The queues of an LSF cluster, 10.1 or later."""

    configuration: Line = ""
    """The directory of lsf.conf; empty: as in this process's environment."""
    directory: Line = ""
    """Where its tools are; empty: on the PATH."""


class ArcQueues(BatchSettings, frozen=True, kw_only=True):
    """The queues of an ARC computing element, told by its REST interface."""

    url: Line
    """Such as https://ce.example.org/arex"""
    proxy_file: Line = ""
    """An X.509 proxy, or a certificate with its key; read anew each time."""
    token_file: Line = ""
    """A bearer token; read anew each time."""
    authorities: Line = ""
    """A file or a directory with the certificates of the authorities that are believed; empty: this machine's."""


class FileSettings(BatchSettings, frozen=True, kw_only=True):
    """Elements that a file tells of in GLUE: .ldif, .xml, .json as ARC has it, or one as a ClassAd, .ad."""

    path: Line
    dispatcher: Line = "local"


class Whom(Section, frozen=True, kw_only=True):
    """For whom elements are wanted; what is empty is not looked at."""

    vo: Line = ""
    group: Line = ""
    """A group or role of the VO by its name, or as VOMS has it: `/lhcb/prod/Role=pilot`."""
    owner: Line = ""
    """A person, as the rules of elements name one: the subject of a certificate."""


class IndexSettings(BatchSettings, frozen=True, kw_only=True):
    """The elements that a hierarchy of index servers leads to."""

    urls: Lines
    """Where it begins: `https:`, `http:`, `file:`, or the ads of a broker, `kafka://broker:9092/wms.resource.ads`."""
    site: Line = ""
    """One site for all elements; empty: each its own, called as its index does or as the host of its door."""
    sites: LineTable = {}
    """What a site is called here, by what it would be called."""
    hosts: Lines = []
    """Patterns of hosts that indexes may lead to, such as `*.example.org`, or `*` for all; empty: the hosts of `urls`, and those
    of their domains."""
    for_whom: Annotated[list[Whom], msgspec.Meta(max_length=10_000)] = []
    """Elements are left out that let none of these in; empty: none is."""
    proxy_file: Line = ""
    """An X.509 proxy, or a certificate with its key; read anew each time."""
    token_file: Line = ""
    """A bearer token; read anew each time."""
    token_hosts: Lines = []
    """Patterns of the hosts that are shown the token, over https."""
    authorities: Line = ""
    """A file or a directory with the certificates of the authorities that are believed; empty: this machine's."""
    jwks: Line = ""
    """Of the ads of a broker: a file with the keys of the issuers whose tokens are believed there."""
    server_seconds: Seconds = 15.0
    """To wait for one server."""
    whole_seconds: Seconds = 20.0
    """For the whole hierarchy: what has not come by then is left out this time."""
    patience_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 2.0
    """To wait for a server whose last answer can stand in."""
    servers_at_once: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 8
    fresh_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 30.0
    """An answer that is not older is not asked for again."""


class AdvertisingSettings(Section, frozen=True, kw_only=True):
    """How ads are published."""

    token_file: Line
    """A token of kind site; it says for which sites this advertiser may speak."""
    period_seconds: Seconds = 60.0
    """Of this machine's own elements."""
    lifetime_seconds: Lifetime = 180.0


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    advertising: AdvertisingSettings
    elements: Annotated[list[LocalElement], msgspec.Meta(max_length=10_000)] = []
    slurm: Annotated[list[SlurmQueues], msgspec.Meta(max_length=10_000)] = []
    pbs: Annotated[list[PbsQueues], msgspec.Meta(max_length=10_000)] = []
    lsf: Annotated[list[LsfQueues], msgspec.Meta(max_length=10_000)] = []
    arc: Annotated[list[ArcQueues], msgspec.Meta(max_length=10_000)] = []
    files: Annotated[list[FileSettings], msgspec.Meta(max_length=10_000)] = []
    indexes: Annotated[list[IndexSettings], msgspec.Meta(max_length=10_000)] = []
