"""Answers on the state of the system: progress of job groups and arrays, failures, wait reasons, lost pilots, and services."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import Client, JobNumber, LongText, LongTexts, MessageId, Seconds, StoredName, Total, Word
from wms.messages.replies.bounds import Counts, Many


class ProgressLine(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of jobs by state: of one job group, or of one job array that has no group, or of all single jobs without a group.

    The line of the single jobs has an empty `job_group` and no `last`.
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
    """How many of the jobs ended within the last seconds, whose number is the answer's `recent_seconds`."""
    submitted_at: datetime
    """When the first of the jobs was submitted."""
    changed_at: datetime
    """When one of the jobs last changed its state."""


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """Answers ShowProgress. Groups and arrays with jobs that have not ended come first, then the newest."""

    query_id: MessageId
    client: Client
    recent_seconds: Seconds
    lines: Annotated[tuple[ProgressLine, ...], Many]
    counted_from: JobNumber | None = None
    """If the sender may see so many jobs that they are not all counted yet: jobs with lower ids are not, apart from some in arrays. Else None."""


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
    """How many jobs wait for one reason, with the explanation stored for the task queue that has the most of them."""

    code: Word
    """The reason: one of `wms.job.wait_reason_codes.WaitCode`."""
    jobs: Total
    queues: Total
    tq_id: JobNumber
    """The task queue that has the most of these jobs."""
    text: LongText
    advice: LongText = ""
    """What would help; empty if nothing needs to be done."""


class PilotEndLine(msgspec.Struct, frozen=True, kw_only=True):
    """How many pilots of one computing element ended for one cause other than by themselves."""

    site: StoredName
    ce: StoredName
    cause: LongText
    pilots: Total
    last_pilot: StoredName
    last_at: datetime


class ServiceLine(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one service, summed up over its instances (processes)."""

    service: StoredName
    instances: Total
    """How many instances sent a heartbeat lately."""
    since: datetime
    """The start of the oldest live instance. If none is alive, the time of the last heartbeat of any instance."""
    lag: Total
    """How many messages on Kafka the live instances have yet to read."""
    problems: LongTexts = ()


class Overview(msgspec.Struct, frozen=True, kw_only=True, tag="overview"):
    """Answers ShowOverview: how attempts and pilots ended since a time, why jobs wait, and the health of the services."""

    query_id: MessageId
    client: Client
    since: datetime
    """The time from which on ends of attempts and of pilots are counted."""
    outcomes: Annotated[tuple[OutcomeLine, ...], Many] = ()
    """How attempts of jobs that the sender may see ended. The most frequent outcomes come first."""
    waits: Annotated[tuple[WaitLine, ...], Many] = ()
    """Why jobs that the sender may see wait. The gravest reason comes first."""
    pilot_ends: Annotated[tuple[PilotEndLine, ...], Many] = ()
    """Why pilots of the sender's VO ended, or of all VOs for an operator. The most frequent causes come first."""
    services: Annotated[tuple[ServiceLine, ...], Many] = ()
