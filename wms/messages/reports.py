"""The topic `wms.job.reports`: reports of job agents, which run in pilots. Key: the pilot, so that its reports keep their order."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import (
    Bytes,
    Client,
    Digest,
    ExitCode,
    Explanation,
    LongText,
    Megabytes,
    MessageId,
    Moment,
    Name,
    Reason,
    Seconds,
    Signal,
    Text,
    Word,
)
from wms.ids import AttemptId, Epoch, JobId, PilotId, ReportId
from wms.job.reasons import Code
from wms.site import Told

TOPIC = "wms.job.reports"

Many = msgspec.Meta(max_length=4_096)
REFUSED_LIMIT = 1_000_000_000
TRANSFERS_LIMIT = 40
"""The most entries on transfers in one result: one for each storage host and direction."""


POINTS_LIMIT = 64
"""The most points of what one attempt used over time."""
CURVES_LIMIT = 64
"""The most attempts whose points one report has."""
UsagePoint: TypeAlias = tuple[
    Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)],
    Annotated[int, msgspec.Meta(ge=0, le=2**53)],
    Annotated[int, msgspec.Meta(ge=0, le=2**53)],
]
"""Seconds since the payload began, milliseconds of CPU time until then, and the most KiB of memory since the point before."""
UsagePoints: TypeAlias = Annotated[tuple[UsagePoint, ...], msgspec.Meta(max_length=POINTS_LIMIT)]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that one attempt to run a job used."""

    cpu_user_seconds: Seconds = 0.0
    cpu_system_seconds: Seconds = 0.0
    wall_seconds: Seconds = 0.0
    max_rss_bytes: Bytes = 0
    disk_bytes: Bytes = 0


class HostTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """The files that an attempt moved between its node and one storage host, in one direction, and the time that this took."""

    part: Literal["stage_in", "stage_out"]
    host: Name
    """The storage host, or the bucket of `s3` URLs. Empty for files of the node itself."""
    files: Annotated[int, msgspec.Meta(ge=0, le=100_000)]
    size: Bytes
    """The size of all these files together, in bytes."""
    seconds: Seconds
    """The seconds that all these transfers took together, with those that ran at the same time counted once."""


class UsageOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's present attempt used over time: all its points, which replace those of earlier reports."""

    job_id: JobId
    epoch: Epoch
    points: UsagePoints


class StagingReport(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of the file transfers of a job's present attempt."""

    job_id: JobId
    epoch: Epoch
    part: Literal["stage_in", "stage_out"]
    files: Annotated[int, msgspec.Meta(ge=0, le=100_000)]
    files_done: Annotated[int, msgspec.Meta(ge=0, le=100_000)]
    bytes_done: Bytes
    """The bytes moved so far. Bytes that were moved again after an error count again."""
    bytes_total: Bytes | None = None
    """The bytes of all files. None while the size of any file is unknown."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt to run a job ended, as the job agent saw it."""

    job_id: JobId
    epoch: Epoch
    outcome: Literal["done", "failed", "killed", "lost"]
    """How the attempt ended. `lost`: by the fault of the site or the agent, so that the job is tried again."""
    code: Code
    text: Explanation = ""
    exit_code: ExitCode | None = None
    signal: Signal | None = None
    started_at: Moment | None = None
    """When the payload started, by the node's clock. Only shown to people, never used in computations."""
    usage: Usage = Usage()
    output_sha256: Digest | None = None
    output_bytes: Bytes = 0
    stdout_tail: Text = ""
    stderr_tail: Text = ""
    began: bool = True
    """Whether the payload began. If not, the attempt does not count against the job's limit of attempts."""
    transfers: Annotated[tuple[HostTransfer, ...], msgspec.Meta(max_length=TRANSFERS_LIMIT)] = ()
    """The speed of the attempt's transfers: one entry for each storage host and direction."""
    slot_seconds: Seconds = 0.0
    """How long the attempt took its slots, for its files and its payload together. 0: not measured."""
    stdout_from: Bytes | None = None
    """How many bytes the payload printed before `stdout_tail`. None from older agents: not known."""
    stderr_from: Bytes | None = None
    """How many bytes the payload printed before `stderr_tail`. None from older agents: not known."""
    retries: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    """How many times a job that failed so is to be started again in all, by its description. 0: never, or not after this exit code."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt that ended, as job id and epoch (the number of times the job was given away)."""
        return AttemptId(self.job_id, self.epoch)


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """What a pilot reports at one moment. It is sent again with the same id until it is answered.

    The fields take effect in their order. Every entry names job and epoch. An entry with another epoch than the job's changes
    nothing, nor does one that arrives after the lease's end. Both are answered in `lost`.
    """

    report_id: ReportId
    pilot_id: PilotId
    decline: Annotated[tuple[AttemptId, ...], Many] = ()
    """Attempts that the pilot returns for other pilots: offers, or jobs with a lease whose payload did not begin.

    They do not count against the jobs' limits of attempts.
    """
    accept: Annotated[tuple[AttemptId, ...], Many] = ()
    start: Annotated[tuple[AttemptId, ...], Many] = ()
    renew: Annotated[tuple[AttemptId, ...], Many] = ()
    finish: Annotated[tuple[Result, ...], Many] = ()
    state: Literal["running", "draining", "ended"] = "running"
    slots: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    busy: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    reason: Reason = ""
    """Why the pilot drains (takes no more jobs) or ended."""
    free_memory_mb: Megabytes | None = None
    """The memory left for further jobs in MB. None if not reported."""
    refused_orders: Annotated[int, msgspec.Meta(ge=0, le=REFUSED_LIMIT)] = 0
    """How many messages to the pilot it ignored, because no service had signed them. Above 0, somebody forges orders."""
    staging: Annotated[tuple[StagingReport, ...], Many] = ()
    """The progress of the file transfers of the pilot's jobs. Only jobs whose files are moving now have an entry."""
    usage: Annotated[tuple[UsageOverTime, ...], msgspec.Meta(max_length=CURVES_LIMIT)] = ()
    """What its jobs used over time. Only jobs with new points have an entry."""
    node: Told = ()
    """The attributes that the pilot measured on its node. Only reports that renew leases or give the pilot's state have them."""
    isolation: Word = ""
    """How the pilot isolates payloads on its node: `account` (namespaces, under an account of their own), `namespaces`, `none`, or `direct`.

    `direct`: the job was sent directly, and is not isolated. Empty if not reported.
    """


class Peeked(msgspec.Struct, frozen=True, kw_only=True, tag="peeked"):
    """A part of what a job printed, in answer to a Peek."""

    pilot_id: PilotId
    job_id: JobId
    epoch: Epoch
    stream: Literal["stdout", "stderr"]
    offset: Bytes
    size: Bytes
    text: LongText
    query_id: MessageId
    client: Client
    asker: Name
    ticket: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """The proof that the Peek contained. Without it the answer is dropped."""
    raw: bool = False
    """What the Peek says of it."""
    end: Bytes | None = None
    """The position after the last byte. None from older agents: the text has all bytes."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt that printed this, as job id and epoch (the number of times the job was given away)."""
        return AttemptId(self.job_id, self.epoch)


FromAgent = Report | Peeked
