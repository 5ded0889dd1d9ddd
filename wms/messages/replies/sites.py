"""Computing elements: their ads, their health, and what was planned for them."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import (
    Client,
    Count,
    CpuTime,
    Document,
    JobNumber,
    LongText,
    LongTexts,
    MessageId,
    StoredName,
    Total,
    Word,
)
from wms.messages.replies.bounds import Lines, Many, Position

Hindrance: TypeAlias = Literal[
    "", "NO_DEMAND", "LIMIT", "NO_ROOM", "CAP", "BACKOFF", "QUARANTINE", "BANNED", "DRAINING"
]
"""What kept more pilots from being sent; empty where nothing did."""


class JobsThere(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a computing element as its ad's source counts them, and as we do."""

    source: Total
    """In any state, others' too: CurrentJobs."""
    source_submitting: Total
    """Of these, those that do not run yet: CurrentSubmittingJobs."""
    pilots: Total
    """Ours that have not ended."""
    jobs: Total
    """Ours that run in these."""
    unseen: Total
    """Pilots that were under way when the source counted: not among its jobs."""
    idle: Total
    """Pilots among its jobs that had no job of ours."""
    pilots_left: Total | None
    """Pilots that may be sent before the next ad; None: the ad states no limit."""
    jobs_left: Total | None
    """Jobs that may be given to pilots there before the next ad."""


class SiteLine(msgspec.Struct, frozen=True, kw_only=True):
    """A computing element as a list shows it."""

    site: StoredName
    ce: StoredName
    dispatcher: StoredName
    advertised_at: datetime
    expires_at: datetime
    fresh: bool
    ad: Document
    pilots: Total
    running_jobs: Total
    notices: Lines = ()
    """What keeps jobs and pilots from it: "suppress: 40 of 40 jobs (MaxJobs)"; likewise "delay" and "avoid"."""
    jobs_there: JobsThere | None = None
    entry_point: LongText = ""
    """Where the grid enters it, a GRAM contact or another URL; empty if its ad does not say."""
    monitoring_database: LongText = ""
    state: Word = "healthy"
    """One of `wms.provisioning.health.STATES`, its site's where that is avoided as a whole."""
    until: datetime | None = None
    reason: LongText = ""
    said_by: StoredName = ""


class Sites(msgspec.Struct, frozen=True, kw_only=True, tag="sites"):
    """Answers ListSites."""

    query_id: MessageId
    client: Client
    sites: Annotated[tuple[SiteLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class SiteMove(msgspec.Struct, frozen=True, kw_only=True):
    """One change of how an element, or with `ce` empty its site, is."""

    at: datetime
    site: StoredName
    ce: StoredName
    before: Word
    event: Word
    state: Word
    reason: LongText
    said_by: StoredName


class CanaryLine(msgspec.Struct, frozen=True, kw_only=True):
    """A job by which an element was tried; `outcome` is empty while it is out."""

    job_id: JobNumber
    site: StoredName
    ce: StoredName
    sent_at: datetime
    asked_by: StoredName
    outcome: Word


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided for one class of work at one element: its jobs, who takes them up, and what held more back."""

    vo: StoredName
    cpu_segment: CpuTime
    processors: Count
    wanted: Total
    """Jobs that wait and could run there."""
    taken: Total
    """Of them, those that pilots there, running or on the way, take up."""
    sent: Count
    """Pilots sent for them."""
    elsewhere: Total
    """Jobs that pilots elsewhere take up, or new ones anywhere."""
    held: Hindrance
    why: LongText


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided for an element, for all VOs together."""

    site: StoredName
    ce: StoredName
    ordered: Count
    reasons: LongTexts
    submitted: Count = 0
    waiting: Count = 0
    running: Count = 0
    idle_slots: Total = 0
    ending: Count = 0
    room: Total = 0
    shares: Annotated[tuple[Share, ...], msgspec.Meta(max_length=1_000)] = ()


class PlanLine(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner last decided of an element, and since when."""

    decided_at: datetime
    decision: Decision


class SiteDetail(msgspec.Struct, frozen=True, kw_only=True, tag="site-detail"):
    """Answers ShowSite; histories are newest first, at most a hundred of each."""

    query_id: MessageId
    client: Client
    elements: Annotated[tuple[SiteLine, ...], Many]
    moves: Annotated[tuple[SiteMove, ...], Many] = ()
    canaries: Annotated[tuple[CanaryLine, ...], Many] = ()
    plans: Annotated[tuple[PlanLine, ...], Many] = ()


class Plans(msgspec.Struct, frozen=True, kw_only=True, tag="plans"):
    """Answers ListPlans."""

    query_id: MessageId
    client: Client
    plans: Annotated[tuple[PlanLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""
