"""What a job agent is told: written by who sends the pilot, read by the pilot."""

from wms.bus.kafka import Settings as KafkaSettings
from wms.runtime.config import Count, LogSettings, Seconds, Section
from wms.site import Value


class PilotSettings(Section, frozen=True, kw_only=True):
    """Who the pilot is. The token says it too, and only the token is believed."""

    pilot_id: str
    site: str
    ce: str
    vo: str
    slots: int
    token_file: str
    directory: str
    """Below it every job gets a directory of its own."""
    idle_seconds: Seconds = 30.0
    """After so long without a job the pilot ends by itself."""
    lifetime_seconds: Seconds = 1_209_600.0
    """After so long it takes no more jobs."""
    grace_seconds: float = 10.0
    """What a drain leaves running jobs before they are given back."""
    ahead_seconds: float = 0.5
    """Of short jobs so many seconds of work are fetched ahead, so that slots do not wait for the next."""
    lifeline: str = ""
    """The lock file of a system on this machine: the pilot ends when its holder does."""


class ResourceSettings(Section, frozen=True, kw_only=True):
    """What the pilot offers a job."""

    setup: str = "default"
    cpu_time: Count = 86_400
    memory_mb: Count = 0
    """0: what the machine has."""
    platforms: list[str] = []
    """Empty: what the machine is."""
    tags: list[str] = []
    required_tags: list[str] = []
    job_types: list[str] = []
    pilot_type: str = ""
    ad: str = ""
    """The ClassAd of the computing element, as its site told it."""
    software: str = ""
    """A directory on the node whose entries are the names of its runtime environments; empty: as the ad says."""
    node: dict[str, Value] = {}
    """What of the node its batch system was asked for: attributes of that ad, in lower case."""


class SandboxSettings(Section, frozen=True, kw_only=True):
    """Where sandboxes are."""

    url: str


class PilotConfig(Section, frozen=True, kw_only=True):
    """The whole file."""

    pilot: PilotSettings
    sandboxes: SandboxSettings
    resource: ResourceSettings = ResourceSettings()
    kafka: KafkaSettings = KafkaSettings()
    log: LogSettings = LogSettings()
