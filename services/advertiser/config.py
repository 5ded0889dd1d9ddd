"""The configuration file of the advertiser."""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import Count, Expression, Line, Lines, LineTable
from wms.messages.ads import Scalar
from wms.runtime.config import ProcessConfig, Seconds, Section

Lifetime: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class SiteStatement(Section, frozen=True, kw_only=True):
    """What a site's administrators state about computing elements. A stated value replaces the one that the source reports."""

    setup: Line = "default"
    slots: Count = 0
    """How many jobs can run at the same time. 0: the value that the source reports."""
    slots_per_pilot: Count = 0
    """How many jobs one pilot runs at the same time. 0: as many as the computing element has slots, at most eight."""
    memory_mb: Count = 0
    """Memory in MB: on this machine for all slots together, in a batch system for one pilot. 0: the value that the source reports."""
    disk_mb: Count = 0
    """Disk space in MB for the job directories of a pilot. 0: not stated; the pilots measure it."""
    grid_middleware: Line = ""
    """The name of the grid middleware by which jobs may choose the computing element. Empty: the same name as `dispatcher`."""
    max_waiting_pilots: Count = 4
    max_pilots: Count = 0
    """The most pilots that have not ended, at a time. 0: as many as fill the slots."""
    max_jobs: Count = 0
    """The most jobs in any state, at a time. Jobs of other users count too, if the source counts them. 0: no limit."""
    max_submitting_jobs: Count = 0
    """The most jobs that are submitted and do not run yet, at a time. 0: no limit."""
    tags: Lines = []
    required_tags: Lines = []
    """Tags that a job must have to run on the computing element."""
    pilot_type: Line = ""
    """What the site calls its pilots, by which jobs may choose them. Empty: `private` or `generic`, as each pilot is."""
    platforms: Lines = []
    """Platform names that jobs may require. Empty: those that the source reports."""
    submit_pools: Lines = []
    vos: Lines = []
    """The VOs whose jobs the computing element accepts. Empty: those that the source reports, or all if it reports none."""
    stations: Lines = []
    """Names of SAM-Grid stations (data-handling servers) at the site. Users choose the station of a job by name."""
    entry_point: Line = ""
    """The address at which the grid submits jobs, a GRAM contact such as `ce.example.org:2119/jobmanager-pbs`.

    Empty: the contact in the GLUE record that is read.
    """
    monitoring_database: Line = ""
    """The URL of the SAM-Grid database for monitoring events of jobs."""
    applications: Lines = []
    """Names of installed software that jobs may require, in addition to those that the source reports."""
    close_storage: LineTable = {}
    """Storage elements close to the computing element, each with the path where the machines mount it. An empty path: not mounted."""
    benchmarks: Annotated[
        dict[Line, Annotated[float, msgspec.Meta(gt=0, le=1e9)]], msgspec.Meta(max_length=1_000)
    ] = {}
    """Benchmark results of one core, by name: `HEPSPEC06`, `SI00`, `SF00`."""
    attributes: Annotated[
        dict[Line, Scalar | Annotated[list[Scalar], msgspec.Meta(max_length=10_000)]],
        msgspec.Meta(max_length=1_000),
    ] = {}
    """Further attributes of the ad, by name, which expressions of jobs may use."""
    requirements: Expression = ""
    """A ClassAd expression over a job (`other`). Only jobs for which it is true run here; the limits above hold too."""
    rank: Expression = ""
    """A ClassAd expression over a job (`other`). The site prefers jobs with greater values."""


class LocalElement(SiteStatement, frozen=True, kw_only=True):
    """A computing element that is this machine itself, or a part of it. Values that are not stated are measured."""

    site: Line
    ce: Line = "local"
    max_cpu_time: Count = 864_000
    directory: Line = ""
    """A directory on the disk of the pilots' job directories. Its free space is advertised if `disk_mb` is 0."""
    count_jobs: bool = True
    """Whether to count the jobs on this machine by their processes, as `ps` does, for the ad's CurrentJobs."""


class BatchSettings(SiteStatement, frozen=True, kw_only=True):
    """The queues of a batch system or information system. Each becomes a computing element with the queue's name."""

    site: Line
    queues: Lines = []
    """The queues to advertise; empty: all. Queues that share machines report the same free slots: advertise only one of them."""
    names: LineTable = {}
    """Names of computing elements by their queues, where they differ from the queue's name."""
    dispatcher: Line = ""
    """The kind of dispatcher that sends pilots to these queues, such as `slurm`. Empty: that of the batch system that is read."""
    max_cpu_time: Count = 0
    """The longest CPU time of a job in seconds. 0: the value that the source reports."""
    period_seconds: Seconds = 300.0
    look_seconds: Seconds = 60.0
    """Seconds from one reading of the source to the next. Important changes are published at once."""
    lifetime_seconds: Lifetime = 900.0


class SlurmQueues(BatchSettings, frozen=True, kw_only=True):
    """The partitions of one Slurm cluster, each advertised as a computing element."""

    configuration: Line = ""
    """The path of slurm.conf. Empty: the one that Slurm's tools use by themselves."""
    directory: Line = ""
    """The directory of Slurm's tools. Empty: they are on the PATH."""
    users: Lines = []
    """The users whose jobs count in the ad's CurrentJobs. Empty: all."""


class PbsQueues(BatchSettings, frozen=True, kw_only=True):
    """The execution queues of one server of Torque or PBS Pro, each advertised as a computing element."""

    server: Line = ""
    """The host of the PBS server. Empty: the default server in PBS's own configuration."""
    directory: Line = ""
    """The directory of PBS's tools. Empty: they are on the PATH."""


class LsfQueues(BatchSettings, frozen=True, kw_only=True):
    """The queues of one LSF cluster (10.1 or later), each advertised as a computing element."""

    configuration: Line = ""
    """The directory of lsf.conf. Empty: the one in this process's environment."""
    directory: Line = ""
    """The directory of LSF's tools. Empty: they are on the PATH."""


class ArcQueues(BatchSettings, frozen=True, kw_only=True):
    """The queues of one ARC computing element, read through its REST interface."""

    url: Line
    """The URL of the REST interface, such as https://ce.example.org/arex."""
    proxy_file: Line = ""
    """A file with an X.509 proxy, or with a certificate and its key. It is read again for each request."""
    token_file: Line = ""
    """A file with a bearer token. It is read again for each request."""
    authorities: Line = ""
    """A file or directory with certificates of trusted certificate authorities. Empty: those of this machine."""


class FileSettings(BatchSettings, frozen=True, kw_only=True):
    """A file that describes computing elements: GLUE as .ldif, .xml or .json (ARC's form), or one ClassAd as .ad."""

    path: Line
    dispatcher: Line = "local"


class AdmittedIdentity(Section, frozen=True, kw_only=True):
    """An identity that a computing element must admit. An empty field matches anything."""

    vo: Line = ""
    group: Line = ""
    """A group or role of the VO: its name, or its VOMS form such as `/lhcb/prod/Role=pilot`."""
    owner: Line = ""
    """A person, by the subject of the person's certificate."""


class IndexSettings(BatchSettings, frozen=True, kw_only=True):
    """Computing elements that are found through index servers, which may lead to further servers."""

    urls: Lines
    """The servers that are asked first: `https:`, `http:` or `file:` URLs, or the ads of a Kafka broker: `kafka://broker:9092/wms.resource.ads`."""
    site: Line = ""
    """One site name for all computing elements. Empty: each has its own, from its index or the host of its endpoint."""
    sites: LineTable = {}
    """Names that sites get in this system, by their names in the index."""
    hosts: Lines = []
    """Patterns of the hosts that may be asked because an index server names them, such as `*.example.org`, or `*` for all.

    Empty: the hosts of `urls` and their domains.
    """
    for_whom: Annotated[list[AdmittedIdentity], msgspec.Meta(max_length=10_000)] = []
    """Only computing elements that admit one of these identities are advertised. Empty: all computing elements are advertised."""
    proxy_file: Line = ""
    """A file with an X.509 proxy, or with a certificate and its key. It is read again for each request."""
    token_file: Line = ""
    """A file with a bearer token. It is read again for each request."""
    token_hosts: Lines = []
    """Patterns of the host names to which the bearer token is sent, over https only."""
    authorities: Line = ""
    """A file or directory with certificates of trusted certificate authorities. Empty: those of this machine."""
    jwks: Line = ""
    """A file with the public keys of trusted token issuers. Needed for the ads of a Kafka broker."""
    server_seconds: Seconds = 15.0
    """The time limit, in seconds, of a request to one server."""
    whole_seconds: Seconds = 20.0
    """The time limit, in seconds, of one search through all servers. Answers that come later are kept for the next search."""
    patience_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 2.0
    """Seconds to wait for a server whose last answer can be used in place of a new one."""
    servers_at_once: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 8
    fresh_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 30.0
    """Seconds for which the answer of a server is used again without a new request."""


class AdvertisingSettings(Section, frozen=True, kw_only=True):
    """How ads are sent: the site's token, and the intervals for the computing elements of this machine."""

    token_file: Line
    """A file with a token of kind `site`, which names the sites for which this advertiser may publish ads."""
    period_seconds: Seconds = 60.0
    """Seconds from one ad of a computing element of this machine to its next."""
    lifetime_seconds: Lifetime = 180.0


class Config(ProcessConfig, frozen=True, kw_only=True):
    """The whole configuration file of the advertiser: one table for each source of computing elements."""

    advertising: AdvertisingSettings
    elements: Annotated[list[LocalElement], msgspec.Meta(max_length=10_000)] = []
    slurm: Annotated[list[SlurmQueues], msgspec.Meta(max_length=10_000)] = []
    pbs: Annotated[list[PbsQueues], msgspec.Meta(max_length=10_000)] = []
    lsf: Annotated[list[LsfQueues], msgspec.Meta(max_length=10_000)] = []
    arc: Annotated[list[ArcQueues], msgspec.Meta(max_length=10_000)] = []
    files: Annotated[list[FileSettings], msgspec.Meta(max_length=10_000)] = []
    indexes: Annotated[list[IndexSettings], msgspec.Meta(max_length=10_000)] = []
