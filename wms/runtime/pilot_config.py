"""What a job agent is told: written by who sends the pilot, read by the pilot."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from wms.bounds import Count, Line, Lines, LongText, Name
from wms.bus.kafka import BrokerSettings
from wms.runtime.config import LogSettings, Seconds, Section
from wms.site import Value

Pause: TypeAlias = Annotated[float, Meta(ge=0, le=86_400)]


class PilotSettings(Section, frozen=True, kw_only=True):
    """Who the pilot is. The token says it too, and only the token is believed."""

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
    """What a drain leaves running jobs before they are given back."""
    ahead_seconds: Pause = 0.5
    """Of short jobs so many seconds of work are fetched ahead, so that slots do not wait for the next."""
    lifeline: Line = ""
    """The lock file of a system on this machine: the pilot ends when its holder does."""
    isolation: Literal["auto", "required", "none"] = "auto"
    """Whether payloads run in namespaces of their own: where the node allows it, always, so that a pilot ends where it does
    not, or never."""
    hidden: Lines = []
    """Directories that payloads in namespaces of their own find empty, beside the pilot's and the sandbox store's."""


class ResourceSettings(Section, frozen=True, kw_only=True):
    """What the pilot offers a job."""

    setup: Line = "default"
    cpu_time: Count = 86_400
    memory_mb: Count = 0
    """0: what the machine has."""
    platforms: Lines = []
    """Empty: what the machine is."""
    tags: Lines = []
    required_tags: Lines = []
    job_types: Lines = []
    pilot_type: Line = ""
    ad: LongText = ""
    """The ClassAd of the computing element, as its site told it."""
    software: Line = ""
    """A directory on the node whose entries are the names of its runtime environments; empty: as the ad says."""
    node: Annotated[dict[Name, Value], Meta(max_length=100)] = {}
    """What of the node its batch system was asked for: attributes of that ad, in lower case."""


class SandboxSettings(Section, frozen=True, kw_only=True):
    """Where sandboxes are."""

    url: Line


class PilotConfig(Section, frozen=True, kw_only=True):
    """The whole file."""

    pilot: PilotSettings
    sandboxes: SandboxSettings
    resource: ResourceSettings = ResourceSettings()
    kafka: BrokerSettings = BrokerSettings()
    log: LogSettings = LogSettings()
