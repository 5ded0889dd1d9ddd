"""The configuration of a job agent: written by the sender of the pilot, read by the pilot."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from wms.bounds import Count, Line, Lines, LongText, Name
from wms.bus.kafka import BrokerSettings
from wms.runtime.config import LogSettings, Seconds, Section
from wms.site import Value

Pause: TypeAlias = Annotated[float, Meta(ge=0, le=86_400)]


class PilotSettings(Section, frozen=True, kw_only=True):
    """The identity of the pilot and its limits. The token has the identity too, and only the token is trusted."""

    pilot_id: Line
    site: Line
    ce: Line
    vo: Line
    slots: Count
    token_file: Line
    directory: Line
    """Below it every job gets a directory of its own."""
    idle_seconds: Seconds = 30.0
    """After so long without a job the pilot ends by itself."""
    lifetime_seconds: Seconds = 1_209_600.0
    """After so long it takes no more jobs."""
    grace_seconds: Pause = 10.0
    """Seconds that running jobs have at a drain before they are given back."""
    ahead_seconds: Pause = 0.5
    """With short jobs, so many seconds of work are fetched ahead, so that slots do not wait for the next job."""
    lifeline: Line = ""
    """The lock file of a system on this machine: the pilot ends when its holder does."""
    isolation: Literal["auto", "required", "none"] = "auto"
    """Whether payloads run in namespaces of their own: `auto` where the node allows it, `required` else the pilot ends, or `none`."""
    hidden: Lines = []
    """Directories that are empty for payloads in namespaces, beside the pilot's and the sandbox store's."""


class ResourceSettings(Section, frozen=True, kw_only=True):
    """The resources that the pilot offers to jobs."""

    setup: Line = "default"
    cpu_time: Count = 86_400
    memory_mb: Count = 0
    """In MB; 0: the machine's memory."""
    platforms: Lines = []
    """Empty: the machine's platforms."""
    tags: Lines = []
    required_tags: Lines = []
    job_types: Lines = []
    pilot_type: Line = ""
    ad: LongText = ""
    """The ClassAd of the computing element, as its site advertised it."""
    software: Line = ""
    """A directory on the node whose entries are the names of its runtime environments; empty: those of the ad."""
    node: Annotated[dict[Name, Value], Meta(max_length=100)] = {}
    """Attributes of the node that the batch system was asked for, by their names in the ad, in lower case."""


class SandboxSettings(Section, frozen=True, kw_only=True):
    """The sandbox store."""

    url: Line


class PilotConfig(Section, frozen=True, kw_only=True):
    """The whole file."""

    pilot: PilotSettings
    sandboxes: SandboxSettings
    resource: ResourceSettings = ResourceSettings()
    kafka: BrokerSettings = BrokerSettings()
    log: LogSettings = LogSettings()
