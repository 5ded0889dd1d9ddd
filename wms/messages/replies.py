"""`wms.user.<owner>.inbox`: answers to one user's tools. Key: the tool (`client`), which passes over the others'."""

from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import (
    Bytes,
    Client,
    Document,
    ExitCode,
    JobNumber,
    JobRange,
    LongText,
    Measure,
    MessageId,
    Seconds,
    Sequence,
    Signal,
    StoredName,
    Total,
    Word,
)
from wms.ids import CommandId, slug
from wms.provisioning.plan import Decision
from wms.taskqueue.limits import Limit
from wms.why.forecast import Forecast
from wms.why.relaxation import Relaxation

Position = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
"""The number of an entry in a list that comes by pages."""

INBOX_PREFIX = "wms.user."

Lines: TypeAlias = Annotated[tuple[LongText, ...], msgspec.Meta(max_length=100_000)]
Counts: TypeAlias = Annotated[dict[LongText, Total], msgspec.Meta(max_length=100_000)]
Many = msgspec.Meta(max_length=1_000_000)
"""Of the lines of a table; the size of a message keeps them to less."""


def inbox(owner: str) -> str:
    """Return the topic of the owner's inbox. The owner is the token's, so that no answer goes to another."""
    return f"{INBOX_PREFIX}{slug(owner)}.inbox"


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps jobs of the same requirements from running anywhere, now (IMPOSSIBLE_NOW) or ever (NEVER_POSSIBLE)."""

    code: Word
    text: LongText
    jobs: Total
    relaxations: Annotated[tuple[Relaxation, ...], Many] = ()
    """What they could ask for instead, the change that opens the most slots first."""


class Submitted(msgspec.Struct, frozen=True, kw_only=True, tag="submitted"):
    """The jobs are taken and durable; their ids are these ranges, in the order of the descriptions."""

    command_id: CommandId
    client: Client
    ids: Annotated[tuple[JobRange, ...], Many]
    repeated: bool = False
    """This command had been taken before; nothing new was submitted."""
    warnings: Lines = ()
    """What the user ought to know of the jobs, in words."""
    foreseen: Annotated[tuple[Foreseen, ...], Many] = ()
    """What keeps some of them from running anywhere; at most ten."""


class ValuesKept(msgspec.Struct, frozen=True, kw_only=True, tag="values-kept"):
    """The values are kept for the Submit that names them."""

    command_id: CommandId
    client: Client


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The command or query was refused whole, and changed nothing."""

    reply_to: MessageId
    """The command's or query's id."""
    client: Client
    code: Word
    message: LongText
    remedy: LongText = ""
    details: Lines = ()


class Unchanged(msgspec.Struct, frozen=True):
    """A job that a Control left as it was."""

    job_id: JobNumber
    why: LongText


class Controlled(msgspec.Struct, frozen=True, kw_only=True, tag="controlled"):
    """What a Control did."""

    command_id: CommandId
    client: Client
    changed: Total
    unchanged: Annotated[tuple[Unchanged, ...], Many] = ()
    """At most a hundred of them."""
    unchanged_total: Total = 0
    unchanged_by_state: Counts = {}
    """How many of them are in each state; ids of no job are in none."""
    repeated: bool = False


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


class CeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one computing element says to one job."""

    site: StoredName
    ce: StoredName
    fits: bool
    clauses: Lines = ()
    """Every requirement that fails there, in words."""
    pilots: Total = 0
    """Running ones of the job's VO."""
    free_slots: Total = 0
    fresh: bool = True
    """It advertises itself now."""
    limits: Lines = ()
    """What holds the job back there although it fits."""
    coming: Total = 0
    """Pilots on the way there."""
    slots: Total = 0
    """Of the pilots that run."""
    avoid: LongText = ""
    """Why other elements are better for now, though the job may run there."""
    rank: Measure | None = None
    """What the job's own rank says of it, if the job has one and fits."""
    decided: Lines = ()
    """The terms of its requirements that the element's ad decides, where it fits."""
    forwarded: Lines = ()
    """What of them is asked of the batch system there, each with the option that says it."""
    on_node: Lines = ()
    """What of them nobody is asked for, and why: the job agent looks at its node before anything starts."""


class JobWhy(msgspec.Struct, frozen=True, kw_only=True, tag="job-why"):
    """Answers WhyJob: a sentence first, the evidence after it."""

    query_id: MessageId
    client: Client
    job_id: JobNumber
    state: Word
    code: Word
    """Of a waiting job its tier, from NEVER_POSSIBLE to SOON; else the reason of its last move."""
    summary: LongText
    advice: LongText = ""
    ahead: Total | None = None
    """Jobs waiting in the same task queue, this one not counted."""
    elements: Annotated[tuple[CeVerdict, ...], Many] = ()
    """At most two hundred of them, those that are nearest to fitting first."""
    elements_total: Total = 0
    elements_fitting: Total = 0
    """Those that advertise themselves now and fit, whatever the limits."""
    failing: Counts = {}
    """By requirement: at how many computing elements it fails."""
    relaxations: Annotated[tuple[Relaxation, ...], Many] = ()
    """What the job could ask for instead, the change that opens the most slots first."""
    forecast: Forecast | None = None
    """Its place in its task queue and when it may start."""


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


class QueueLine(msgspec.Struct, frozen=True, kw_only=True):
    """A task queue as a list shows it."""

    tq_id: JobNumber
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    cpu_segment: Total
    waiting: Total
    requirements: Document


class Queues(msgspec.Struct, frozen=True, kw_only=True, tag="queues"):
    """Answers ListQueues, fullest first."""

    query_id: MessageId
    client: Client
    queues: Annotated[tuple[QueueLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""


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


class PilotLine(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot as a list shows it."""

    pilot_id: StoredName
    site: StoredName
    ce: StoredName
    vo: StoredName
    state: Word
    slots: Total
    busy: Total
    jobs_done: Total
    submitted_at: datetime
    seen_at: datetime | None
    reason: LongText
    owner_group: StoredName = ""
    """Of a private pilot whose jobs it takes; empty: any group's of its VO."""
    owner: StoredName = ""
    """And there whose; empty: all of the group's, which shares them."""


class PilotOrderLine(msgspec.Struct, frozen=True, kw_only=True):
    """An order for private pilots as a list shows it."""

    order_id: JobNumber
    vo: StoredName
    owner_group: StoredName
    owner: StoredName
    """Who ordered them."""
    group_wide: bool
    site: StoredName
    ce: StoredName
    wanted: Total
    sent: Total
    """Those that were sent, but for those that ended before they began to run."""
    alive: Total
    state: Word
    """open, fulfilled, expired or withdrawn."""
    ordered_at: datetime
    expires_at: datetime
    held: LongText = ""
    """Why no pilot could be sent at the last look."""


class PilotOrders(msgspec.Struct, frozen=True, kw_only=True, tag="pilot-orders"):
    """Answers ListPilotOrders."""

    query_id: MessageId
    client: Client
    orders: Annotated[tuple[PilotOrderLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class Pilots(msgspec.Struct, frozen=True, kw_only=True, tag="pilots"):
    """Answers ListPilots."""

    query_id: MessageId
    client: Client
    pilots: Annotated[tuple[PilotLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class PilotDetail(msgspec.Struct, frozen=True, kw_only=True, tag="pilot-detail"):
    """Answers ShowPilot."""

    query_id: MessageId
    client: Client
    pilot: PilotLine
    dispatcher: StoredName
    reference: LongText | None
    """What its element calls it."""
    started_at: datetime | None
    ended_at: datetime | None
    word: LongText | None
    """What its element said of it last, and when."""
    word_at: datetime | None
    cause: LongText | None
    """What became of it, if it did not end by itself."""
    output: LongText | None
    """The end of what it printed; None as long as it was not fetched, which is some time after its end."""
    refused_orders: Total = 0
    """Messages to it that no service had signed: any says that somebody forges orders."""


class Ruled(msgspec.Struct, frozen=True, kw_only=True, tag="ruled"):
    """A rule holds from now on; matchers apply it within seconds."""

    command_id: CommandId
    client: Client
    said: LongText
    """What holds, in words."""
    repeated: bool = False
    jobs: Annotated[tuple[JobNumber, ...], Many] = ()
    """Of a test, the canaries that are out."""


class ShareLine(msgspec.Struct, frozen=True, kw_only=True):
    """A group's share and how it stands."""

    vo: StoredName
    owner_group: StoredName
    job_share: Measure
    job_sharing: bool
    background: bool
    source: Word
    """`set` at run time, of the `file`, or the `default`."""
    said_by: StoredName = ""
    owners: Total = 0
    """With waiting jobs."""
    waiting_jobs: Total = 0
    running_jobs: Total = 0
    """With a pilot."""
    private_pilots: bool = False
    used_hours: Seconds = 0.0
    """Of processors, in ended attempts, halved every half-life; 0 where usage does not count."""
    effective_share: Measure | None = None
    """The share as it counts by that usage; of an older job manager, none."""


class Shares(msgspec.Struct, frozen=True, kw_only=True, tag="shares"):
    """Answers ListShares."""

    query_id: MessageId
    client: Client
    shares: Annotated[tuple[ShareLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class LimitLine(msgspec.Struct, frozen=True, kw_only=True):
    """A limit and who said it."""

    limit: Limit
    lifted: bool = False
    """The file says it, and at run time it was said not to hold."""
    source: Word
    """`set` at run time, or of the `file`."""
    said_by: StoredName = ""


class CountLine(msgspec.Struct, frozen=True, kw_only=True):
    """How far something is that a limit counts."""

    site: StoredName
    ce: StoredName
    attribute: Word
    value: LongText
    running: Total


class LimitList(msgspec.Struct, frozen=True, kw_only=True, tag="limit-list"):
    """Answers ListLimits; of owners, each is told of its own counts alone, but for operators."""

    query_id: MessageId
    client: Client
    limits: Annotated[tuple[LimitLine, ...], Many]
    counts: Annotated[tuple[CountLine, ...], Many]
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


Reply = (
    Submitted
    | ValuesKept
    | Refused
    | Controlled
    | JobPage
    | SweepPage
    | JobCounts
    | JobDetail
    | JobWhy
    | JobOutput
    | Queues
    | Sites
    | Pilots
    | PilotDetail
    | Ruled
    | Shares
    | LimitList
    | SiteDetail
    | Plans
    | PilotOrders
)
