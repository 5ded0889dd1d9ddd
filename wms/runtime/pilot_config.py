"""The configuration file of a job agent, the program that a pilot runs. The service that sends the pilot writes it.

The two may be of different versions, so it changes by the rules for messages: a new key has a default that means what its absence
meant before, and an agent passes over keys that it does not know.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from wms.bounds import Count, Line, Lines, LongText, Moment, Name
from wms.bus.kafka import KafkaSettings
from wms.runtime.config import LogSettings, Seconds, Section
from wms.site import Value
from wms.transfer.movers import TransferSettings

Pause: TypeAlias = Annotated[float, Meta(ge=0, le=86_400)]


class PilotSettings(Section, frozen=True, kw_only=True):
    """The pilot's identity and limits. Services trust only the identity in the pilot's token, not the one here."""

    pilot_id: Line
    site: Line
    ce: Line
    vo: Line
    slots: Count
    token_file: Line
    directory: Line
    """The directory in which the working directory of each job is made."""
    most_jobs: Count = 0
    """The number of jobs after which the pilot ends. 0: no limit."""
    idle_seconds: Seconds = 30.0
    """Seconds without a running job after which the pilot ends."""
    lifetime_seconds: Seconds = 1_209_600.0
    """Seconds since its start after which the pilot takes no more jobs."""
    grace_seconds: Pause = 10.0
    """Seconds that running jobs get to end by themselves when the pilot is told to stop. After them their payloads get SIGTERM."""
    stop_seconds: Pause = 25.0
    """Seconds after which all payloads are killed when the pilot is told to stop. Their jobs return to their queues.

    Whoever stops the pilot must wait some seconds longer. Slurm (`KillWait`) and Kubernetes wait 30 s unless they are told otherwise.
    """
    grace_most_seconds: Pause = 300.0
    """The most seconds from SIGTERM to SIGKILL that a job gets when it is ended, whatever its `grace_time`."""
    ahead_seconds: Pause = 1.0
    """How many seconds of short jobs are fetched ahead for each slot, so that slots do not wait. Longer jobs wait in their queues."""
    isolation: Literal["auto", "required", "none"] = "auto"
    """Whether payloads are isolated in namespaces: `auto` if the node allows it, `required` (else the pilot ends), or `none`."""
    cgroups: Literal["auto", "none"] = "auto"
    """Whether each payload gets a cgroup with its limits: `auto` if the node delegates cgroups of version 2, or `none`."""
    hidden: Lines = []
    """Directories that isolated payloads see as empty. The pilot's directory and the sandbox store are always hidden."""
    walltime_seconds: Count = 0
    """Seconds after which the batch system ends the pilot, and with it its jobs. 0: unknown."""
    earliest_start: Moment | None = None
    """When the program of the pilot's job may start at the earliest. Its files are fetched before. Empty: at once."""
    latest_start: Moment | None = None
    """When the program of the pilot's job may start at the latest; later the job fails. Empty: at any time."""


class ResourceSettings(Section, frozen=True, kw_only=True):
    """What the pilot offers to jobs: processor time, memory, platforms, tags and the attributes of its computing element."""

    setup: Line = "default"
    cpu_time: Count = 86_400
    memory_mb: Count = 0
    """Memory in MB for all jobs of the pilot together. 0: that of the machine."""
    platforms: Lines = []
    """The platform names that jobs may require of the pilot. Empty: those of the machine."""
    tags: Lines = []
    required_tags: Lines = []
    job_types: Lines = []
    pilot_type: Line = ""
    ad: LongText = ""
    """The ClassAd that the site advertised for the pilot's computing element."""
    software: Line = ""
    """A directory on the node with one entry for each installed runtime environment. Empty: the ad lists them."""
    node: Annotated[dict[Name, Value], Meta(max_length=100)] = {}
    """Attributes of the node that the pilot requested from the batch system, by their lower-case names in the ad."""


class SandboxSettings(Section, frozen=True, kw_only=True):
    """Where the store of input and output sandboxes is, and the certificate authorities that are trusted for its gateway."""

    url: Line
    """The address of the store: `file:///absolute/directory`, or that of a gateway, `https://HOST:PORT`."""
    authorities: LongText = ""
    """Certificates, in PEM, of the authorities that are trusted for the gateway. Empty: those that the node trusts."""


class GatewayAccess(Section, frozen=True, kw_only=True):
    """The gateway through which the pilot reaches the services over HTTPS. The node's proxy settings (`HTTPS_PROXY`) are used."""

    url: Line = ""
    """The address of the gateway. Empty: the pilot reaches the Kafka broker itself."""
    authorities: LongText = ""
    """Certificates, in PEM, of the authorities that are trusted for the gateway. Empty: those that the node trusts."""


class PilotConfig(Section, frozen=True, kw_only=True):
    """The whole configuration file of a job agent."""

    pilot: PilotSettings
    sandboxes: SandboxSettings
    resource: ResourceSettings = ResourceSettings()
    transfers: TransferSettings = TransferSettings()
    kafka: KafkaSettings = KafkaSettings()
    gateway: GatewayAccess = GatewayAccess()
    log: LogSettings = LogSettings()
