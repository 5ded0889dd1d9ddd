"""The configuration of the job manager."""

from typing import Annotated

import msgspec
from msgspec import Meta

from wms.bounds import CpuTime, Line
from wms.lease import LeaseTerms
from wms.matching.grouping import DEFAULT_SEGMENTS, checked_segments
from wms.runtime.config import Seconds, Section, ServiceConfig, UsageSettings


class QueueSettings(Section, frozen=True, kw_only=True):
    """The grouping of jobs into task queues."""

    cpu_segments: Annotated[tuple[CpuTime, ...], Meta(max_length=1_000)] = DEFAULT_SEGMENTS
    """Upper bounds in seconds of CPU time, ascending. Longer jobs belong to the last segment."""
    removed_when_empty_seconds: Seconds = 300.0

    def __post_init__(self) -> None:
        checked_segments(self.cpu_segments)


class SandboxStoreSettings(Section, frozen=True, kw_only=True):
    """The sandbox store, and how long unreferenced sandboxes are kept."""

    url: Line = ""
    kept_unreferenced_seconds: Seconds = 86_400.0


class SubmissionSettings(Section, frozen=True, kw_only=True):
    """The rate at which each owner may submit; more is refused, with the time when it may be sent again."""

    bytes_per_second: Annotated[int, msgspec.Meta(ge=1_000, le=10**12)] = 8_000_000
    burst_bytes: Annotated[int, msgspec.Meta(ge=2_000_000, le=10**12)] = 400_000_000
    """Bytes that may come at once, after a while without any."""


DAY = 86_400.0


class RetentionSettings(Section, frozen=True, kw_only=True):
    """How long ended things are kept. The bus keeps its messages for a week, and the audit compares them with the tables."""

    ended_jobs_seconds: Seconds = 365 * DAY
    """Seconds after its end a job is deleted, with its history, its attempts and its description.

    So are canaries, orders of operators, and past moves of elements.
    """
    deleted_jobs_seconds: Seconds = 30 * DAY
    """The same for a job that its owner removed."""
    submissions_seconds: Seconds = 30 * DAY
    """For so long a repeated submission is recognised. No longer than jobs are kept."""
    pilots_seconds: Seconds = 90 * DAY
    """Seconds after its end a pilot is deleted; its attempts stay with their jobs."""
    dead_letters_seconds: Seconds = 30 * DAY
    """Seconds after their arrival, whether replayed or not."""
    dead_letters_most: Annotated[int, msgspec.Meta(ge=8, le=10_000_000)] = 10_000
    """The most dead letters; the oldest are deleted first. No sender has more than an eighth."""
    dead_letters_bytes: Annotated[int, msgspec.Meta(ge=8_388_608, le=1_099_511_627_776)] = 268_435_456
    """The most bytes of all dead letters."""
    unused_parts_seconds: Seconds = 3_600.0
    """For parts of long lists of parameters without a submission."""
    offsets_seconds: Seconds = 90 * DAY
    """For offsets of abandoned clusters."""

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
