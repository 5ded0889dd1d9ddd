"""`wms.job.reports`: reports of job agents. Key: the pilot, so that one pilot's reports keep their order."""

from typing import Annotated, Literal

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
)
from wms.ids import AttemptId, Epoch, JobId, PilotId, ReportId
from wms.job.reasons import Code

TOPIC = "wms.job.reports"

Many = msgspec.Meta(max_length=4_096)
REFUSED_LIMIT = 1_000_000_000
TRANSFERS_LIMIT = 40
"""The most storage hosts of which one result tells, both directions together."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that an attempt used."""

    cpu_user_seconds: Seconds = 0.0
    cpu_system_seconds: Seconds = 0.0
    wall_seconds: Seconds = 0.0
    max_rss_bytes: Bytes = 0
    disk_bytes: Bytes = 0


class HostTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt measured of the way between its node and a storage host."""

    part: Literal["stage_in", "stage_out"]
    host: Name
    """The host, or the bucket of `s3` URLs; empty for files of the node."""
    files: Annotated[int, msgspec.Meta(ge=0, le=100_000)]
    size: Bytes
    """Bytes of all these files."""
    seconds: Seconds
    """The time that they took together."""


class StagingReport(msgspec.Struct, frozen=True, kw_only=True):
    """How far the transfers of an attempt are."""

    job_id: JobId
    epoch: Epoch
    part: Literal["stage_in", "stage_out"]
    files: Annotated[int, msgspec.Meta(ge=0, le=100_000)]
    files_done: Annotated[int, msgspec.Meta(ge=0, le=100_000)]
    bytes_done: Bytes
    """Bytes that moved, with those that moved again after a fault."""
    bytes_total: Bytes | None = None
    """Bytes of all files; None while the size of one is not known."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an attempt, as its agent observed it."""

    job_id: JobId
    epoch: Epoch
    outcome: Literal["done", "failed", "killed", "lost"]
    """`lost`: the site's or the agent's fault, so that the job is tried again."""
    code: Code
    text: Explanation = ""
    exit_code: ExitCode | None = None
    signal: Signal | None = None
    started_at: Moment | None = None
    """The start by the node's clock: for display, never used in computations."""
    usage: Usage = Usage()
    output_sha256: Digest | None = None
    output_bytes: Bytes = 0
    stdout_tail: Text = ""
    stderr_tail: Text = ""
    began: bool = True
    """Whether the payload began. If not, the job does not lose one of its attempts."""
    transfers: Annotated[tuple[HostTransfer, ...], msgspec.Meta(max_length=TRANSFERS_LIMIT)] = ()
    """What it measured of the ways to storage, one for each host and direction."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt that ended."""
        return AttemptId(self.job_id, self.epoch)


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that is returned because the node does not meet the job's requirements."""

    job_id: JobId
    epoch: Epoch
    text: Reason
    """The term that is not true there, with the values it read."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt that is returned."""
        return AttemptId(self.job_id, self.epoch)


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """The report of a pilot at one moment; sent again with the same id until it is answered.

    Applied in the order of the fields. Every entry names job and epoch. An entry with another epoch than the job's, or one that
    arrives after the lease's end, changes nothing and is answered in `lost`.
    """

    report_id: ReportId
    pilot_id: PilotId
    decline: Annotated[tuple[AttemptId, ...], Many] = ()
    """Offers, and granted jobs whose payload was not begun, returned for other pilots; this costs the jobs no attempt."""
    accept: Annotated[tuple[AttemptId, ...], Many] = ()
    start: Annotated[tuple[AttemptId, ...], Many] = ()
    renew: Annotated[tuple[AttemptId, ...], Many] = ()
    finish: Annotated[tuple[Result, ...], Many] = ()
    state: Literal["running", "draining", "ended"] = "running"
    slots: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    busy: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    reason: Reason = ""
    """The reason why the pilot drains or ended."""
    unfit: Annotated[tuple[Unfit, ...], Many] = ()
    """Offers returned for other pilots, like those in `decline`, each with its reason."""
    free_memory_mb: Megabytes | None = None
    """The memory left for jobs, in MB; None if not reported."""
    refused_orders: Annotated[int, msgspec.Meta(ge=0, le=REFUSED_LIMIT)] = 0
    """The number of messages to the pilot that it ignored because no service had signed them; above 0, somebody forges orders."""
    staging: Annotated[tuple[StagingReport, ...], Many] = ()
    """How far the transfers of its jobs are, of those whose files move now."""


class Peeked(msgspec.Struct, frozen=True, kw_only=True, tag="peeked"):
    """The output of a job, in answer to a Peek."""

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
    """The ticket of the Peek; without it the answer is dropped."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt whose output this is."""
        return AttemptId(self.job_id, self.epoch)


FromAgent = Report | Peeked
