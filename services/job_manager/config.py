"""What the job manager is told."""

from wms.lease import Terms
from wms.runtime.config import Seconds, Section, ServiceConfig
from wms.taskqueue.grouping import DEFAULT_SEGMENTS, checked_segments


class QueueSettings(Section, frozen=True, kw_only=True):
    """How jobs are grouped."""

    cpu_segments: tuple[int, ...] = DEFAULT_SEGMENTS
    """Upper bounds in seconds of CPU time; they increase. What is above the last belongs to it."""
    removed_when_empty_seconds: Seconds = 300.0

    def __post_init__(self) -> None:
        checked_segments(self.cpu_segments)


class SandboxSettings(Section, frozen=True, kw_only=True):
    """Where sandboxes are, and how long one that no job refers to is kept."""

    url: str = ""
    kept_unreferenced_seconds: Seconds = 86_400.0


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    lease: Terms = Terms()
    queues: QueueSettings = QueueSettings()
    sandboxes: SandboxSettings = SandboxSettings()
