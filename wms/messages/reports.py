"""`wms.job.reports`: what job agents tell. Key: the pilot, so that one pilot's reports keep their order."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from wms.ids import Epoch, JobId, PilotId, ReportId
from wms.job.reasons import Code

TOPIC = "wms.job.reports"

Held = Annotated[tuple[JobId, Epoch], msgspec.Meta()]
Many = msgspec.Meta(max_length=4_096)
REFUSED_LIMIT = 1_000_000_000


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt used."""

    cpu_user_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    cpu_system_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    wall_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    max_rss_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    disk_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended, as its agent saw it."""

    job_id: JobId
    epoch: Epoch
    outcome: Literal["done", "failed", "killed", "lost"]
    """`lost`: the site's or the agent's fault, so that the job is tried again."""
    code: Code
    text: Annotated[str, msgspec.Meta(max_length=1_000)] = ""
    exit_code: int | None = None
    signal: int | None = None
    started_at: datetime | None = None
    """By the node's clock: shown, never reckoned with."""
    usage: Usage = Usage()
    output_sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None
    output_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    stdout_tail: Annotated[str, msgspec.Meta(max_length=4_096)] = ""
    stderr_tail: Annotated[str, msgspec.Meta(max_length=4_096)] = ""
    began: bool = True
    """Whether its payload began: what did not costs the job none of its attempts."""


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that is given back since the node does not do what the job requires."""

    job_id: JobId
    epoch: Epoch
    text: Annotated[str, msgspec.Meta(max_length=500)]
    """Which term is not true there, and the values it saw."""


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """All that a pilot has to tell at one moment; sent again with the same id until it is answered.

    Applied in the order of the fields. Every part names job and epoch; what names another epoch than the job's, or
    comes after the lease's end, changes nothing and is answered in `lost`.
    """

    report_id: Annotated[ReportId, msgspec.Meta(min_length=1, max_length=100)]
    pilot_id: Annotated[PilotId, msgspec.Meta(min_length=1, max_length=100)]
    decline: Annotated[tuple[Held, ...], Many] = ()
    """Offers, and granted jobs whose payload was not begun, for others to have; it costs them no attempt."""
    accept: Annotated[tuple[Held, ...], Many] = ()
    start: Annotated[tuple[Held, ...], Many] = ()
    renew: Annotated[tuple[Held, ...], Many] = ()
    finish: Annotated[tuple[Result, ...], Many] = ()
    state: Literal["running", "draining", "ended"] = "running"
    slots: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    busy: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    reason: Annotated[str, msgspec.Meta(max_length=500)] = ""
    """Why the pilot drains or ended."""
    unfit: Annotated[tuple[Unfit, ...], Many] = ()
    """Offers for others to have, like those in `decline`, each with its reason."""
    free_memory_mb: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] | None = None
    """What it has left for jobs; none: it does not say."""
    refused_orders: Annotated[int, msgspec.Meta(ge=0, le=REFUSED_LIMIT)] = 0
    """How many messages for the pilot it passed over, since no service had signed them; any says that somebody forges orders."""


class Peeked(msgspec.Struct, frozen=True, kw_only=True, tag="peeked"):
    """The answer to a Peek."""

    pilot_id: PilotId
    job_id: JobId
    epoch: Epoch
    stream: Literal["stdout", "stderr"]
    offset: Annotated[int, msgspec.Meta(ge=0)]
    size: Annotated[int, msgspec.Meta(ge=0)]
    text: Annotated[str, msgspec.Meta(max_length=131_072)]
    query_id: Annotated[str, msgspec.Meta(max_length=200)]
    client: Annotated[str, msgspec.Meta(max_length=200)]
    asker: Annotated[str, msgspec.Meta(max_length=300)]


FromAgent = Report | Peeked
