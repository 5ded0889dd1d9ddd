"""`wms.job.reports`: what job agents tell. Key: the pilot, so that one pilot's reports keep their order."""

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


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt used."""

    cpu_user_seconds: Seconds = 0.0
    cpu_system_seconds: Seconds = 0.0
    wall_seconds: Seconds = 0.0
    max_rss_bytes: Bytes = 0
    disk_bytes: Bytes = 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended, as its agent saw it."""

    job_id: JobId
    epoch: Epoch
    outcome: Literal["done", "failed", "killed", "lost"]
    """`lost`: the site's or the agent's fault, so that the job is tried again."""
    code: Code
    text: Explanation = ""
    exit_code: ExitCode | None = None
    signal: Signal | None = None
    started_at: Moment | None = None
    """By the node's clock: shown, never reckoned with."""
    usage: Usage = Usage()
    output_sha256: Digest | None = None
    output_bytes: Bytes = 0
    stdout_tail: Text = ""
    stderr_tail: Text = ""
    began: bool = True
    """Whether its payload began: what did not costs the job none of its attempts."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt that ended."""
        return AttemptId(self.job_id, self.epoch)


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that is given back since the node does not do what the job requires."""

    job_id: JobId
    epoch: Epoch
    text: Reason
    """Which term is not true there, and the values it saw."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt that is given back."""
        return AttemptId(self.job_id, self.epoch)


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """All that a pilot has to tell at one moment; sent again with the same id until it is answered.

    Applied in the order of the fields. Every part names job and epoch; what names another epoch than the job's, or
    comes after the lease's end, changes nothing and is answered in `lost`.
    """

    report_id: ReportId
    pilot_id: PilotId
    decline: Annotated[tuple[AttemptId, ...], Many] = ()
    """Offers, and granted jobs whose payload was not begun, for others to have; it costs them no attempt."""
    accept: Annotated[tuple[AttemptId, ...], Many] = ()
    start: Annotated[tuple[AttemptId, ...], Many] = ()
    renew: Annotated[tuple[AttemptId, ...], Many] = ()
    finish: Annotated[tuple[Result, ...], Many] = ()
    state: Literal["running", "draining", "ended"] = "running"
    slots: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    busy: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    reason: Reason = ""
    """Why the pilot drains or ended."""
    unfit: Annotated[tuple[Unfit, ...], Many] = ()
    """Offers for others to have, like those in `decline`, each with its reason."""
    free_memory_mb: Megabytes | None = None
    """What it has left for jobs; none: it does not say."""
    refused_orders: Annotated[int, msgspec.Meta(ge=0, le=REFUSED_LIMIT)] = 0
    """How many messages for the pilot it passed over, since no service had signed them; any says that somebody forges orders."""


class Peeked(msgspec.Struct, frozen=True, kw_only=True, tag="peeked"):
    """The answer to a Peek."""

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
    """As in the Peek: without it the answer goes to nobody."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt whose output this is."""
        return AttemptId(self.job_id, self.epoch)


FromAgent = Report | Peeked
