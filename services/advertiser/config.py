"""The configuration of the advertiser."""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import Count, Expression, Line, Lines, LineTable
from wms.messages.ads import Scalar
from wms.runtime.config import Seconds, Section, ServiceConfig

Lifetime: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class SiteStatement(Section, frozen=True, kw_only=True):
    """Statements of a site's administrators on its elements, which override the values that are read."""

    setup: Line = "default"
    slots: Count = 0
    """The number of concurrent jobs; 0: the value that is read."""
    slots_per_pilot: Count = 0
    """0: as many as the element has, at most eight."""
    memory_mb: Count = 0
    """For this machine, of all slots together; for a batch system, of one pilot. 0: the value that is read."""
    disk_mb: Count = 0
    """Disk space for the directories of a pilot's jobs; 0: not stated, and measured by pilots."""
    grid_middleware: Line = ""
    """The grid middleware by which jobs may choose the element; empty: the dispatcher's."""
    max_waiting_pilots: Count = 4
    max_pilots: Count = 0
    """0: as many as fill the slots."""
    max_jobs: Count = 0
    """The most jobs in any state, also of others where the source counts them; 0: no limit."""
    max_submitting_jobs: Count = 0
    """The most jobs that are being submitted; 0: no limit."""
    tags: Lines = []
    required_tags: Lines = []
    """Tags that a job must ask for to run there."""
    platforms: Lines = []
    """Empty: those that are read."""
    submit_pools: Lines = []
    vos: Lines = []
    """VOs whose jobs it takes; empty: those that are read, or all."""
    stations: Lines = []
    """Names by which users choose where data is handled (SAM-Grid)."""
    entry_point: Line = ""
    """The entry point of the grid, a GRAM URL such as `ce.example.org:2119/jobmanager-pbs`; empty: the contact in GLUE."""
    monitoring_database: Line = ""
    """The URL of the database for monitoring events of jobs (SAM-Grid)."""
    applications: Lines = []
    """Installed software, by the names that jobs use; added to what is read."""
    close_storage: LineTable = {}
    """Near storage elements, with the path of each on the machines; empty if it is not mounted."""
    benchmarks: Annotated[
        dict[Line, Annotated[float, msgspec.Meta(gt=0, le=1e9)]], msgspec.Meta(max_length=1_000)
    ] = {}
    """Benchmark results of a core: `HEPSPEC06`, `SI00`, `SF00`."""
    attributes: Annotated[
        dict[Line, Scalar | Annotated[list[Scalar], msgspec.Meta(max_length=10_000)]],
        msgspec.Meta(max_length=1_000),
    ] = {}
    """Further attributes for expressions, by name."""
    requirements: Expression = ""
    """An expression over a job (`other`) that must be true, beside the limits on jobs above."""
    rank: Expression = ""
    """An expression over a job: the site prefers jobs with greater values."""


class LocalElement(SiteStatement, frozen=True, kw_only=True):
    """One computing element of this machine; values that are not stated are read from the machine."""

    site: Line
    ce: Line = "local"
    max_cpu_time: Count = 864_000
    count_jobs: bool = True
    """Count jobs by the processes here, as `ps` does, for the ad's CurrentJobs."""


class BatchSettings(SiteStatement, frozen=True, kw_only=True):
    """The queues of a batch or information system: one element each, of the queue's name."""

    site: Line
    queues: Lines = []
    """The advertised queues; empty: all. Queues over the same machines report the same free slots: advertise one of them."""
    names: LineTable = {}
    """Names of elements by queue, where they differ from the queue's."""
    dispatcher: Line = ""
    """The dispatcher of pilots; empty: that of the system that the queue is read from."""
    max_cpu_time: Count = 0
    """In seconds; 0: the value that is read."""
    period_seconds: Seconds = 300.0
    look_seconds: Seconds = 60.0
    """Seconds between readings; important changes are published at once."""
    lifetime_seconds: Lifetime = 900.0


class SlurmQueues(BatchSettings, frozen=True, kw_only=True):
    """The partitions of a Slurm cluster."""

    configuration: Line = ""
    """Path of slurm.conf; empty: Slurm's own."""
    directory: Line = ""
    """Where its tools are; empty: on the PATH."""
    users: Lines = []
    """Users whose jobs CurrentJobs counts; empty: all."""


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
    """The queues of an ARC computing element, by its REST interface."""

    url: Line
    """Such as https://ce.example.org/arex"""
    proxy_file: Line = ""
    """An X.509 proxy, or a certificate with its key; read anew each time."""
    token_file: Line = ""
    """A bearer token; read anew each time."""
    authorities: Line = ""
    """A file or a directory with the certificates of the authorities that are believed; empty: this machine's."""


class FileSettings(BatchSettings, frozen=True, kw_only=True):
    """Elements in a GLUE file: .ldif, .xml, .json in ARC's form, or one element as a ClassAd, .ad."""

    path: Line
    dispatcher: Line = "local"


class Whom(Section, frozen=True, kw_only=True):
    """An identity that elements must let in; empty fields match everything."""

    vo: Line = ""
    group: Line = ""
    """A group or role of the VO by its name, or as VOMS has it: `/lhcb/prod/Role=pilot`."""
    owner: Line = ""
    """A person, by the certificate subject in elements' rules."""


class IndexSettings(BatchSettings, frozen=True, kw_only=True):
    """The elements that a hierarchy of index servers leads to."""

    urls: Lines
    """The first servers: `https:`, `http:`, `file:`, or the ads of a broker, `kafka://broker:9092/wms.resource.ads`."""
    site: Line = ""
    """One site for all elements; empty: each element's own, by its index or the host of its endpoint."""
    sites: LineTable = {}
    """Names of sites here, by their names in the index."""
    hosts: Lines = []
    """Patterns of hosts that indexes may lead to, such as `*.example.org`, or `*` for all; empty: the hosts of `urls` and their domains."""
    for_whom: Annotated[list[Whom], msgspec.Meta(max_length=10_000)] = []
    """Only elements that let one of these in are advertised; empty: all are."""
    proxy_file: Line = ""
    """An X.509 proxy, or a certificate with its key; read anew each time."""
    token_file: Line = ""
    """A bearer token; read anew each time."""
    token_hosts: Lines = []
    """Patterns of the hosts that get the token, over https."""
    authorities: Line = ""
    """A file or a directory with the certificates of the authorities that are believed; empty: this machine's."""
    jwks: Line = ""
    """For the ads of a broker: a file with the keys of trusted issuers."""
    server_seconds: Seconds = 15.0
    """Seconds to wait for one server."""
    whole_seconds: Seconds = 20.0
    """Seconds for the whole hierarchy: later answers are left out this time."""
    patience_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 2.0
    """Seconds to wait for a server whose last answer can be used instead."""
    servers_at_once: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 8
    fresh_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 30.0
    """Seconds for which an answer is used without asking again."""


class AdvertisingSettings(Section, frozen=True, kw_only=True):
    """How ads are published."""

    token_file: Line
    """A token of kind site, which names the sites that this advertiser may speak for."""
    period_seconds: Seconds = 60.0
    """Seconds between the ads of this machine's elements."""
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
