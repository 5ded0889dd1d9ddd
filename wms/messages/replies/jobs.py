"""Answers about jobs, job arrays and what jobs printed."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import (
    Bytes,
    Client,
    Digest,
    Document,
    ExitCode,
    JobNumber,
    LongText,
    MessageId,
    Seconds,
    Sequence,
    Signal,
    StoredName,
    Total,
    Word,
)
from wms.messages.replies.bounds import Counts, Many
from wms.messages.reports import StagingReport, UsagePoints


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the last attempt of a job went, and what distinguishes the job from others of its array."""

    array_index: Total | None = None
    """The job's number in its job array, from the array's first index. None if it belongs to none."""
    parameters: Annotated[dict[LongText, LongText], Many] = {}
    """The job's own values of the parameter lists of its array."""
    attempt: Sequence | None = None
    """The number of the last attempt. None if there was none."""
    ce: StoredName | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: ExitCode | None = None
    signal: Signal | None = None
    cpu_seconds: Seconds | None = None
    wall_seconds: Seconds | None = None
    max_rss_bytes: Bytes | None = None


class JobLine(msgspec.Struct, frozen=True, kw_only=True):
    """One job as an entry of a list."""

    job_id: JobNumber
    name: StoredName
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    state: Word
    reason: LongText
    site: StoredName | None
    attempts: Total
    submitted_at: datetime
    changed_at: datetime
    job_group: Annotated[str, msgspec.Meta(max_length=200)] = ""
    result: JobResult | None = None
    """How the job went, if that was asked for and its details may be seen."""

    def __repr__(self) -> str:
        place = f" at {self.site}" if self.site else ""
        return f"<job {self.job_id} {self.name!r}: {self.state}{place}, {self.reason}>"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a job was given to a pilot: when, where, how it ended, and what it used."""

    epoch: Sequence
    pilot_id: StoredName
    site: StoredName
    ce: StoredName
    offered_at: datetime
    accepted_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: Word | None
    reason: LongText | None
    reason_text: LongText | None
    exit_code: ExitCode | None
    signal: Signal | None
    cpu_seconds: Seconds | None
    wall_seconds: Seconds | None
    max_rss_bytes: Bytes | None
    disk_bytes: Bytes | None
    output_sha256: LongText | None
    output_bytes: Bytes | None
    usage_points: UsagePoints = ()
    """What it used over time: points of seconds since its payload began, CPU milliseconds until then, and KiB of memory then."""


class HolderLine(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that was given the job at some time: its own reports and the reports of its computing element on it."""

    pilot_id: StoredName
    site: StoredName
    ce: StoredName
    dispatcher: StoredName
    reference: LongText | None
    """The name by which the computing element knows the pilot; None if it has none yet."""
    state: Word
    submitted_at: datetime
    started_at: datetime | None
    """When the first report of the pilot arrived. `seen_at` is when the last one did."""
    seen_at: datetime | None
    ended_at: datetime | None
    reason: LongText
    word: LongText | None
    """The last state of the pilot that its computing element reported; `word_at` is the time of this report."""
    word_at: datetime | None
    cause: LongText | None
    """Why the pilot ended, if it did not end by itself. Else None."""


class LeaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """The pilot that holds the job now, and the time until which it does unless it renews the lease."""

    epoch: Sequence
    pilot_id: StoredName
    phase: Word
    expires_at: datetime
    staging: StagingReport | None = None
    """The progress of the job's file transfers, as the pilot last reported it. None if no transfer runs."""


class HeldLease(msgspec.Struct, frozen=True, kw_only=True, tag="held-lease"):
    """Answers ShowLease: the pilot that asked holds the lease of the attempt. The job has input sandboxes of these digests."""

    query_id: MessageId
    client: Client
    job_id: JobNumber
    epoch: Sequence
    inputs: Annotated[tuple[Digest, ...], Many] = ()


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One state change of a job."""

    seq: Sequence
    at: datetime
    event: Word
    state: Word
    epoch: Sequence
    reason: LongText
    text: LongText
    source: Word


class JobPage(msgspec.Struct, frozen=True, kw_only=True, tag="job-page"):
    """Answers ListJobs. `after` is the id after which the next page begins, or None on the last page.

    A page may be short, or even empty, though others follow, since the search for one page scans a bounded number of jobs.
    """

    query_id: MessageId
    client: Client
    jobs: Annotated[tuple[JobLine, ...], Many]
    after: JobNumber | None


class SweepLine(msgspec.Struct, frozen=True, kw_only=True):
    """One job array as an entry of a list. Its jobs have the ids `first` to `last`."""

    first: JobNumber
    last: JobNumber
    name: StoredName
    """The array's name as submitted. In the name of each job, its index and parameters replace the placeholders in braces."""
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    counts: Counts
    """How many jobs of the array are in each state."""
    submitted_at: datetime
    job_group: Annotated[str, msgspec.Meta(max_length=200)] = ""


class SweepPage(msgspec.Struct, frozen=True, kw_only=True, tag="sweep-page"):
    """Answers ListSweeps. `after` is the id after which the next page begins, or None on the last page."""

    query_id: MessageId
    client: Client
    sweeps: Annotated[tuple[SweepLine, ...], Many]
    after: JobNumber | None


class JobCounts(msgspec.Struct, frozen=True, kw_only=True, tag="job-counts"):
    """Answers CountJobs: how many of the chosen jobs are in each state."""

    query_id: MessageId
    client: Client
    counts: Counts
    reasons: Annotated[dict[Word, Counts], Many] = {}
    """How many jobs each state has for each reason. Empty unless the query asked for it."""
    counted_from: JobNumber | None = None
    """If so many jobs are chosen that one answer cannot count them: jobs with lower ids are for further queries. None: all are counted."""


class JobDetail(msgspec.Struct, frozen=True, kw_only=True, tag="job-detail"):
    """Answers ShowJob: everything that is stored about one job."""

    query_id: MessageId
    client: Client
    job: JobLine
    array_index: Total | None
    """The job's number in its job array, from the array's first index. None if it belongs to none."""
    parameters: Annotated[dict[LongText, LongText], Many] = {}
    """The job's own values of the parameter lists of its array."""
    description: Document
    attempts: Annotated[tuple[Attempt, ...], Many]
    history: Annotated[tuple[HistoryLine, ...], Many]
    reason_text: LongText = ""
    """The last known reason why the job waits, in words. Empty for jobs that do not wait."""
    holders: Annotated[tuple[HolderLine, ...], Many] = ()
    """The pilots that were given the job in its attempts."""
    lease: LeaseLine | None = None


class JobOutput(msgspec.Struct, frozen=True, kw_only=True, tag="job-output"):
    """Answers PeekJob: a part of what the job printed. `offset` is the position of its first byte.

    `size` is how many bytes the job has printed so far. Of an ended job only the last bytes are stored: `offset` and `size` count these.
    """

    query_id: MessageId
    client: Client
    job_id: JobNumber
    stream: Word
    offset: Bytes
    size: Bytes
    text: LongText
    live: bool
    """Whether the job was still running when its output was read."""
    end: Bytes | None = None
    """The position after its last byte, where the next part begins. None from older services."""
    whole: bool = False
    """Whether the positions count all bytes that were printed. Of an ended job that takes a query with `whole`, and an agent that told."""
