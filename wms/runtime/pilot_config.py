"""The configuration of a job agent. The service that sends the pilot writes it, and the pilot reads it."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from wms.bounds import Count, Line, Lines, LongText, Name
from wms.bus.kafka import BrokerSettings
from wms.runtime.config import LogSettings, Seconds, Section
from wms.site import Value
from wms.transfer.movers import TransferSettings

Pause: TypeAlias = Annotated[float, Meta(ge=0, le=86_400)]


class PilotSettings(Section, frozen=True, kw_only=True):
    """The pilot's identity and limits. The token contains the identity too, and only the token is trusted."""

    pilot_id: Line
    site: Line
    ce: Line
    vo: Line
    slots: Count
    token_file: Line
    directory: Line
    """The directory below which every job gets a directory of its own."""
    most_jobs: Count = 0
    """The number of jobs after which the pilot ends; 0: as many as come."""
    idle_seconds: Seconds = 30.0
    """Seconds without a job after which the pilot ends."""
    lifetime_seconds: Seconds = 1_209_600.0
    """Seconds after which the pilot takes no more jobs."""
    grace_seconds: Pause = 10.0
    """Seconds that running jobs get to end at a drain before they are returned to the queue."""
    ahead_seconds: Pause = 0.5
    """Seconds of work that are fetched ahead if jobs are short, so that slots do not wait for the next job."""
    lifeline: Line = ""
    """The lock file of a system on this machine. The pilot ends when the lock's holder does."""
    isolation: Literal["auto", "required", "none"] = "auto"
    """Whether payloads run in namespaces of their own: `auto` if the node allows it, `required` (else the pilot ends), or `none`."""
    hidden: Lines = []
    """Directories that payloads in namespaces see as empty, besides the pilot's directory and the sandbox store."""


class ResourceSettings(Section, frozen=True, kw_only=True):
    """The resources that the pilot offers to jobs."""

    setup: Line = "default"
    cpu_time: Count = 86_400
    memory_mb: Count = 0
    """The memory for jobs in MB; 0 for the machine's memory."""
    platforms: Lines = []
    """The platforms that jobs may require; empty for the machine's platforms."""
    tags: Lines = []
    required_tags: Lines = []
    job_types: Lines = []
    pilot_type: Line = ""
    ad: LongText = ""
    """The ClassAd of the computing element, as its site advertised it."""
    software: Line = ""
    """A directory on the node whose entries are the names of its runtime environments. Empty for those in the ad."""
    node: Annotated[dict[Name, Value], Meta(max_length=100)] = {}
    """Attributes of the node that were requested from the batch system, by their names in the ad, in lower case."""


class SandboxSettings(Section, frozen=True, kw_only=True):
    """The settings of the sandbox store."""

    url: Line


class PilotConfig(Section, frozen=True, kw_only=True):
    """The whole configuration file of a job agent."""

    pilot: PilotSettings
    sandboxes: SandboxSettings
    resource: ResourceSettings = ResourceSettings()
    transfers: TransferSettings = TransferSettings()
    kafka: BrokerSettings = BrokerSettings()
    log: LogSettings = LogSettings()
