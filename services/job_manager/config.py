"""What the job manager is told."""

from wms.lease import Terms
from wms.runtime.config import Section, ServiceConfig
from wms.taskqueue.grouping import DEFAULT_SEGMENTS


class QueueSettings(Section, frozen=True, kw_only=True):
    """How jobs are grouped."""

    cpu_segments: tuple[int, ...] = DEFAULT_SEGMENTS
    removed_when_empty_seconds: float = 300.0


class SandboxSettings(Section, frozen=True, kw_only=True):
    """Where sandboxes are, and how long one that no job refers to is kept."""

    url: str = ""
    kept_unreferenced_seconds: float = 86_400.0


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    lease: Terms = Terms()
    queues: QueueSettings = QueueSettings()
    sandboxes: SandboxSettings = SandboxSettings()
