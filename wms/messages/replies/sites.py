"""Answers about computing elements: their ads, their health, and how many pilots were planned for them."""

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
"""The reason that kept more pilots from being sent to a computing element. Empty if there was none."""


class JobsThere(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs at a computing element, as its information source counts them and as this system does."""

    source: Total
    """All batch jobs at the computing element by the source's count, in any state and of anybody: CurrentJobs."""
    source_submitting: Total
    """How many of the batch jobs do not run yet by the source's count: CurrentSubmittingJobs."""
    pilots: Total
    """The number of this system's pilots at the computing element that have not ended."""
    jobs: Total
    """The number of users' jobs that run in this system's pilots at the computing element."""
    unseen: Total
    """How many pilots were still on their way when the source counted, so that they are not in its count."""
    idle: Total
    """How many of the pilots that the source counted held no user's job when the ad was stored. 0 if the ad states no limit."""
    pilots_left: Total | None
    """How many pilots may be sent to the computing element before its next ad. None if the ad states no limit."""
    jobs_left: Total | None
    """How many users' jobs may be given to pilots at the computing element before its next ad. None if the ad states no limit."""


class SiteLine(msgspec.Struct, frozen=True, kw_only=True):
    """One computing element as an entry of a list: its ad, its health, and the pilots and jobs there."""

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
    """What keeps jobs or pilots from the computing element, such as "suppress: 40 of 40 jobs (MaxJobs)".

    Others begin with "delay" or "avoid".
    """
    isolation: Annotated[tuple[Word, ...], msgspec.Meta(max_length=100)] = ()
    """How the pilots there that are alive isolate payloads, in their words: `account` (namespaces, under an account of its own),
    `namespaces` or `none`; `direct` for jobs sent directly. Empty if none has reported.
    """
    jobs_there: JobsThere | None = None
    entry_point: LongText = ""
    """The address at which the grid submits to the computing element: a GRAM contact or another URL. Empty if unknown."""
    monitoring_database: LongText = ""
    stations: Annotated[tuple[StoredName, ...], msgspec.Meta(max_length=100)] = ()
    """The SAM stations of the computing element, by which jobs may choose it."""
    state: Word = "healthy"
    """The computing element's health, one of `wms.provisioning.health.STATES`. If its site is avoided as a whole, the site's."""
    until: datetime | None = None
    reason: LongText = ""
    said_by: StoredName = ""


class Sites(msgspec.Struct, frozen=True, kw_only=True, tag="sites"):
    """Answers ListSites: a page of computing elements."""

    query_id: MessageId
    client: Client
    sites: Annotated[tuple[SiteLine, ...], Many]
    after: Position | None = None
    """The `after` of the query for the next page. None on the last page."""


class SiteMove(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the health state of a computing element, or with `ce` empty of its site."""

    at: datetime
    site: StoredName
    ce: StoredName
    before: Word
    event: Word
    state: Word
    reason: LongText
    said_by: StoredName


class CanaryLine(msgspec.Struct, frozen=True, kw_only=True):
    """A canary: a short test job by which a computing element was tried. `outcome` is empty until it ends."""

    job_id: JobNumber
    site: StoredName
    ce: StoredName
    sent_at: datetime
    asked_by: StoredName
    outcome: Word


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a pilot decision that concerns jobs of one VO, CPU time class and number of processors.

    It counts the waiting jobs and the pilots that will run them, and says what kept more pilots from being sent.
    """

    vo: StoredName
    cpu_segment: CpuTime
    processors: Count
    wanted: Total
    """How many waiting jobs could run at this computing element."""
    taken: Total
    """How many of the waiting jobs will run in the pilots that this computing element already has, running or on their way."""
    sent: Count
    """How many new pilots are sent to this computing element for the waiting jobs."""
    elsewhere: Total
    """How many of the waiting jobs will run in pilots at other computing elements, or in new pilots anywhere."""
    held: Hindrance
    why: LongText


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """How many pilots were ordered for one computing element, for all VOs together, with the reasons and counts behind it."""

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
    """The last decision on how many pilots to send to one computing element.

    `decided_at` is when the decision was first made. Decisions since then had the same content.
    """

    decided_at: datetime
    decision: Decision


class SiteDetail(msgspec.Struct, frozen=True, kw_only=True, tag="site-detail"):
    """Answers ShowSite with all that is stored of a site or computing element.

    Each history has its newest entry first, and at most a hundred.
    """

    query_id: MessageId
    client: Client
    elements: Annotated[tuple[SiteLine, ...], Many]
    moves: Annotated[tuple[SiteMove, ...], Many] = ()
    canaries: Annotated[tuple[CanaryLine, ...], Many] = ()
    plans: Annotated[tuple[PlanLine, ...], Many] = ()


class Plans(msgspec.Struct, frozen=True, kw_only=True, tag="plans"):
    """Answers ListPlans: a page of decisions, one for each computing element."""

    query_id: MessageId
    client: Client
    plans: Annotated[tuple[PlanLine, ...], Many]
    after: Position | None = None
    """The `after` of the query for the next page. None on the last page."""
