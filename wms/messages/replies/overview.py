"""Answers about how things go: the progress of groups and sweeps, and what failed, waits, died or is out of order."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import Client, JobNumber, LongText, LongTexts, MessageId, Seconds, StoredName, Total, Word
from wms.messages.replies.bounds import Counts, Many


class ProgressLine(msgspec.Struct, frozen=True, kw_only=True):
    """How far the jobs of one job group are, or those of one job array without a group.

    The line without a group and without `last` stands for all single jobs without a group.
    """

    job_group: StoredName
    first: JobNumber
    """The lowest id among the jobs; of a job array without a group, that of its first job."""
    last: JobNumber | None = None
    """The id of the last job of the array. None for a group and for single jobs."""
    name: StoredName = ""
    """The name of the array as submitted. Empty for a group and for single jobs."""
    counts: Counts
    """How many of the jobs are in each state."""
    ended_recently: Total
    """How many of the jobs ended within the last `recent_seconds` of the answer."""
    submitted_at: datetime
    """When the first of the jobs was submitted."""
    changed_at: datetime
    """When a job last changed its state."""


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """Answers ShowProgress. Lines with jobs that have not ended come first, then the newest."""

    query_id: MessageId
    client: Client
    recent_seconds: Seconds
    lines: Annotated[tuple[ProgressLine, ...], Many]


class OutcomeLine(msgspec.Struct, frozen=True, kw_only=True):
    """How many attempts ended at one site with one outcome and reason."""

    site: StoredName
    outcome: Word
    reason: StoredName
    attempts: Total
    last_job: JobNumber
    """The highest id among the jobs of these attempts."""
    last_at: datetime


class WaitLine(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs wait for one reason, with the text of their largest task queue."""

    code: Word
    """The reason: one of `wms.job.reasons.Wait`."""
    jobs: Total
    queues: Total
    tq_id: JobNumber
    """The task queue that has the most of these jobs."""
    text: LongText
    advice: LongText = ""
    """What would help; empty if nothing needs to be done."""


class PilotEndLine(msgspec.Struct, frozen=True, kw_only=True):
    """How many pilots of one computing element did not end by themselves, for one cause."""

    site: StoredName
    ce: StoredName
    cause: LongText
    pilots: Total
    last_pilot: StoredName
    last_at: datetime


class ServiceLine(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one service, of all its instances together."""

    service: StoredName
    instances: Total
    """How many instances sent a heartbeat lately."""
    since: datetime
    """The start of the oldest living instance. Without one, the last heartbeat of all."""
    lag: Total
    """How many messages wait for the service."""
    problems: LongTexts = ()


class Overview(msgspec.Struct, frozen=True, kw_only=True, tag="overview"):
    """Answers ShowOverview."""

    query_id: MessageId
    client: Client
    since: datetime
    """The time from which on ends of attempts and of pilots are counted."""
    outcomes: Annotated[tuple[OutcomeLine, ...], Many] = ()
    """The attempts of jobs that the sender may see. The most frequent come first."""
    waits: Annotated[tuple[WaitLine, ...], Many] = ()
    """The waiting jobs that the sender may see. The gravest reason comes first."""
    pilot_ends: Annotated[tuple[PilotEndLine, ...], Many] = ()
    """The pilots of the sender's VO, or of all VOs for an operator. The most frequent come first."""
    services: Annotated[tuple[ServiceLine, ...], Many] = ()
