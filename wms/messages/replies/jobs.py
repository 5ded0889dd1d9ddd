"""Answers about jobs, sweeps and what they printed."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import (
    Bytes,
    Client,
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
from wms.messages.reports import StagingReport


class JobLine(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a list shows it."""

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


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One time a job was given to a pilot."""

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


class HolderLine(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that a job was given to: what it said of itself, and what its element said of it."""

    pilot_id: StoredName
    site: StoredName
    ce: StoredName
    dispatcher: StoredName
    reference: LongText | None
    """What its element calls it."""
    state: Word
    submitted_at: datetime
    started_at: datetime | None
    """When it was heard of first, and last."""
    seen_at: datetime | None
    ended_at: datetime | None
    reason: LongText
    word: LongText | None
    """What its element said of it last, and when."""
    word_at: datetime | None
    cause: LongText | None
    """What became of it, if it did not end by itself."""


class LeaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a job now, and until when unless the lease is renewed."""

    epoch: Sequence
    pilot_id: StoredName
    phase: Word
    expires_at: datetime
    staging: StagingReport | None = None
    """How far its transfers by URL are, as the pilot said last; None if none runs."""


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One move of a job."""

    seq: Sequence
    at: datetime
    event: Word
    state: Word
    epoch: Sequence
    reason: LongText
    text: LongText
    source: Word


class JobPage(msgspec.Struct, frozen=True, kw_only=True, tag="job-page"):
    """Answers ListJobs; `after` is the id to go on from, None at the end."""

    query_id: MessageId
    client: Client
    jobs: Annotated[tuple[JobLine, ...], Many]
    after: JobNumber | None


class SweepLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep as a list shows it: the jobs `first` to `last`."""

    first: JobNumber
    last: JobNumber
    name: StoredName
    """As submitted: in each job's own its index and parameters stand in the place of the braces."""
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    counts: Counts
    """How many of its jobs are in each state."""
    submitted_at: datetime
    job_group: Annotated[str, msgspec.Meta(max_length=200)] = ""


class SweepPage(msgspec.Struct, frozen=True, kw_only=True, tag="sweep-page"):
    """Answers ListSweeps; `after` is the id to go on from, None at the end."""

    query_id: MessageId
    client: Client
    sweeps: Annotated[tuple[SweepLine, ...], Many]
    after: JobNumber | None


class JobCounts(msgspec.Struct, frozen=True, kw_only=True, tag="job-counts"):
    """Answers CountJobs."""

    query_id: MessageId
    client: Client
    counts: Counts
    reasons: Annotated[dict[Word, Counts], Many] = {}
    """By state and reason, if that was asked for."""


class JobDetail(msgspec.Struct, frozen=True, kw_only=True, tag="job-detail"):
    """Answers ShowJob."""

    query_id: MessageId
    client: Client
    job: JobLine
    array_index: Total | None
    """Its number in its sweep, which is the array's or that of the lists of parameters."""
    parameters: Annotated[dict[LongText, LongText], Many] = {}
    """Of a sweep's job, its own."""
    description: Document
    attempts: Annotated[tuple[Attempt, ...], Many]
    history: Annotated[tuple[HistoryLine, ...], Many]
    reason_text: LongText = ""
    """Of a waiting job why it waits, as was last found."""
    holders: Annotated[tuple[HolderLine, ...], Many] = ()
    """The pilots of its attempts."""
    lease: LeaseLine | None = None


class JobOutput(msgspec.Struct, frozen=True, kw_only=True, tag="job-output"):
    """Answers PeekJob; `offset` is that of the first byte in `text`, `size` what the job has printed so far."""

    query_id: MessageId
    client: Client
    job_id: JobNumber
    stream: Word
    offset: Bytes
    size: Bytes
    text: LongText
    live: bool
    """The job was still running when this was read."""
