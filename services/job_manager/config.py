"""The configuration file of the job manager."""

from typing import Annotated

import msgspec
from msgspec import Meta

from wms.bounds import CpuTime, Line
from wms.lease import LeaseDurations
from wms.matching.grouping import DEFAULT_SEGMENTS, checked_segments
from wms.runtime.config import Seconds, Section, ServiceConfig, UsageSettings
from wms.transfer.s3_settings import S3Settings


class QueueSettings(Section, frozen=True, kw_only=True):
    """How jobs are grouped into task queues, and when empty task queues are removed."""

    cpu_segments: Annotated[tuple[CpuTime, ...], Meta(max_length=1_000)] = DEFAULT_SEGMENTS
    """Upper bounds of CPU time in seconds, ascending. Jobs between the same bounds share task queues; longer jobs are in the last."""
    removed_when_empty_seconds: Seconds = 300.0

    def __post_init__(self) -> None:
        checked_segments(self.cpu_segments)


class SandboxStoreSettings(Section, frozen=True, kw_only=True):
    """Where the sandbox store is, and for how many seconds sandboxes are kept to which no job refers."""

    url: Line = ""
    """`file:///absolute/directory` or `s3://bucket/prefix`; empty: no sandboxes are deleted."""
    s3: S3Settings = S3Settings()
    """The server of a store in S3."""
    kept_unreferenced_seconds: Seconds = 86_400.0


class SubmissionSettings(Section, frozen=True, kw_only=True):
    """How many bytes each owner may submit. A submission over that is refused; the refusal says when it may be sent again."""

    bytes_per_second: Annotated[int, msgspec.Meta(ge=1_000, le=10**12)] = 8_000_000
    burst_bytes: Annotated[int, msgspec.Meta(ge=2_000_000, le=10**12)] = 400_000_000
    """Bytes that an owner may submit at once after a pause."""


DAY = 86_400.0


class RetentionSettings(Section, frozen=True, kw_only=True):
    """For how long data about ended jobs, pilots and messages is kept.

    Kafka keeps its messages for a week, and the audit compares them with the database.
    """

    ended_jobs_seconds: Seconds = 365 * DAY
    """Seconds from the end of a job until it is deleted, with its history, attempts and description.

    Canaries (test jobs), operators' orders, and past health states of computing elements are kept for as long.
    """
    deleted_jobs_seconds: Seconds = 30 * DAY
    """Seconds from the removal of a job by its owner until it is deleted, with its history, attempts and description."""
    submissions_seconds: Seconds = 30 * DAY
    """Seconds for which a repeated submission is recognised by its id. Jobs must be kept at least as long."""
    pilots_seconds: Seconds = 90 * DAY
    """Seconds from the end of a pilot until it is deleted. The attempts in it stay with their jobs."""
    audit_trail_seconds: Annotated[float, Meta(ge=7 * 86_400, le=3_660 * 86_400)] = 365 * DAY
    """Seconds for which orders are kept in the audit trail. The database refuses to delete any before it is a week old."""
    dead_letters_seconds: Seconds = 30 * DAY
    """Seconds for which messages that could not be handled (dead letters) are kept, replayed or not."""
    dead_letters_most: Annotated[int, msgspec.Meta(ge=8, le=10_000_000)] = 10_000
    """The most dead letters that are kept; the oldest are deleted first. One sender has at most an eighth of them."""
    dead_letters_bytes: Annotated[int, msgspec.Meta(ge=8_388_608, le=1_099_511_627_776)] = 268_435_456
    """The most bytes of all kept dead letters together."""
    unused_parts_seconds: Seconds = 3_600.0
    """Seconds for which parts of parameter lists are kept that no submission has used."""
    offsets_seconds: Seconds = 90 * DAY
    """Seconds for which the read positions of Kafka clusters are kept that are no longer used."""

    def __post_init__(self) -> None:
        if self.submissions_seconds > min(self.ended_jobs_seconds, self.deleted_jobs_seconds):
            raise ValueError("submissions_seconds must not be more than jobs are kept: it names them")


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole configuration file of the job manager."""

    lease: LeaseDurations = LeaseDurations()
    usage: UsageSettings = UsageSettings()
    queues: QueueSettings = QueueSettings()
    sandboxes: SandboxStoreSettings = SandboxStoreSettings()
    submissions: SubmissionSettings = SubmissionSettings()
    retention: RetentionSettings = RetentionSettings()
