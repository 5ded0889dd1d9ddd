"""What the job manager is told."""

from typing import Annotated

import msgspec
from msgspec import Meta

from wms.bounds import CpuTime, Line
from wms.lease import LeaseTerms
from wms.matching.grouping import DEFAULT_SEGMENTS, checked_segments
from wms.runtime.config import Seconds, Section, ServiceConfig, UsageSettings


class QueueSettings(Section, frozen=True, kw_only=True):
    """How jobs are grouped."""

    cpu_segments: Annotated[tuple[CpuTime, ...], Meta(max_length=1_000)] = DEFAULT_SEGMENTS
    """Upper bounds in seconds of CPU time; they increase. What is above the last belongs to it."""
    removed_when_empty_seconds: Seconds = 300.0

    def __post_init__(self) -> None:
        checked_segments(self.cpu_segments)


class SandboxStoreSettings(Section, frozen=True, kw_only=True):
    """Where sandboxes are, and how long one that no job refers to is kept."""

    url: Line = ""
    kept_unreferenced_seconds: Seconds = 86_400.0


class SubmissionSettings(Section, frozen=True, kw_only=True):
    """How much each owner may submit; what is more is refused, with the time from which on it may be sent again."""

    bytes_per_second: Annotated[int, msgspec.Meta(ge=1_000, le=10**12)] = 8_000_000
    burst_bytes: Annotated[int, msgspec.Meta(ge=2_000_000, le=10**12)] = 400_000_000
    """So many at once, after a while without any."""


DAY = 86_400.0


class RetentionSettings(Section, frozen=True, kw_only=True):
    """How long what is over is kept. The bus keeps its messages for a week, and the audit holds them against this."""

    ended_jobs_seconds: Seconds = 365 * DAY
    """After its end a job is forgotten, with its history, its attempts and its description.

    So are canaries, orders of operators, and what was said of elements so long ago and explains no more how they are.
    """
    deleted_jobs_seconds: Seconds = 30 * DAY
    """The same for a job that its owner has removed."""
    submissions_seconds: Seconds = 30 * DAY
    """For so long a submission that is sent again is known as the same. No longer than jobs are kept."""
    pilots_seconds: Seconds = 90 * DAY
    """After its end a pilot is forgotten; the attempts that it made stay with their jobs."""
    dead_letters_seconds: Seconds = 30 * DAY
    """After they came, whether they were handled after all or not."""
    dead_letters_most: Annotated[int, msgspec.Meta(ge=8, le=10_000_000)] = 10_000
    """Of more the oldest go first. No sender has more than an eighth."""
    dead_letters_bytes: Annotated[int, msgspec.Meta(ge=8_388_608, le=1_099_511_627_776)] = 268_435_456
    """The same of their bytes, all together."""
    unused_parts_seconds: Seconds = 3_600.0
    """Of long lists of parameters whose submission has not come."""
    offsets_seconds: Seconds = 90 * DAY
    """Of clusters that were left for another."""

    def __post_init__(self) -> None:
        if self.submissions_seconds > min(self.ended_jobs_seconds, self.deleted_jobs_seconds):
            raise ValueError("submissions_seconds must not be more than jobs are kept: it names them")


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    lease: LeaseTerms = LeaseTerms()
    usage: UsageSettings = UsageSettings()
    queues: QueueSettings = QueueSettings()
    sandboxes: SandboxStoreSettings = SandboxStoreSettings()
    submissions: SubmissionSettings = SubmissionSettings()
    retention: RetentionSettings = RetentionSettings()
