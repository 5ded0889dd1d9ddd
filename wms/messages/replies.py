"""`wms.user.<owner>.inbox`: answers to one user's tools. Key: the tool (`client`), which passes over the others'."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from wms.ids import CommandId, slug
from wms.provisioning.plan import Decision
from wms.taskqueue.limits import Limit
from wms.why.forecast import Forecast
from wms.why.relaxation import Relaxation

Position = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
"""The number of an entry in a list that comes by pages."""

INBOX_PREFIX = "wms.user."


def inbox(owner: str) -> str:
    """Return the topic of the owner's inbox. The owner is the token's, so that no answer goes to another."""
    return f"{INBOX_PREFIX}{slug(owner)}.inbox"


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps jobs of the same requirements from running anywhere, now (IMPOSSIBLE_NOW) or ever (NEVER_POSSIBLE)."""

    code: str
    text: str
    jobs: int
    relaxations: tuple[Relaxation, ...] = ()
    """What they could ask for instead, the change that opens the most slots first."""


class Submitted(msgspec.Struct, frozen=True, kw_only=True, tag="submitted"):
    """The jobs are taken and durable; their ids are these ranges, in the order of the descriptions."""

    command_id: CommandId
    client: str
    ids: tuple[tuple[int, int], ...]
    repeated: bool = False
    """This command had been taken before; nothing new was submitted."""
    warnings: tuple[str, ...] = ()
    """What the user ought to know of the jobs, in words."""
    foreseen: tuple[Foreseen, ...] = ()
    """What keeps some of them from running anywhere; at most ten."""


class ValuesKept(msgspec.Struct, frozen=True, kw_only=True, tag="values-kept"):
    """The values are kept for the Submit that names them."""

    command_id: CommandId
    client: str


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The command or query was refused whole, and changed nothing."""

    reply_to: str
    """The command's or query's id."""
    client: str
    code: str
    message: str
    remedy: str = ""
    details: tuple[str, ...] = ()


class Unchanged(msgspec.Struct, frozen=True):
    """A job that a Control left as it was."""

    job_id: int
    why: str


class Controlled(msgspec.Struct, frozen=True, kw_only=True, tag="controlled"):
    """What a Control did."""

    command_id: CommandId
    client: str
    changed: int
    unchanged: tuple[Unchanged, ...] = ()
    """At most a hundred of them."""
    unchanged_total: int = 0
    unchanged_by_state: Annotated[dict[str, int], msgspec.Meta(max_length=100)] = {}
    """How many of them are in each state; ids of no job are in none."""
    repeated: bool = False


class JobLine(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a list shows it."""

    job_id: int
    name: str
    owner: str
    owner_group: str
    vo: str
    state: str
    reason: str
    site: str | None
    attempts: int
    submitted_at: datetime
    changed_at: datetime
    job_group: Annotated[str, msgspec.Meta(max_length=200)] = ""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One time a job was given to a pilot."""

    epoch: int
    pilot_id: str
    site: str
    ce: str
    offered_at: datetime
    accepted_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str | None
    reason: str | None
    reason_text: str | None
    exit_code: int | None
    signal: int | None
    cpu_seconds: float | None
    wall_seconds: float | None
    max_rss_bytes: int | None
    disk_bytes: int | None
    output_sha256: str | None
    output_bytes: int | None


class HolderLine(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that a job was given to: what it said of itself, and what its element said of it."""

    pilot_id: str
    site: str
    ce: str
    dispatcher: str
    reference: str | None
    """What its element calls it."""
    state: str
    submitted_at: datetime
    started_at: datetime | None
    """When it was heard of first, and last."""
    seen_at: datetime | None
    ended_at: datetime | None
    reason: str
    word: str | None
    """What its element said of it last, and when."""
    word_at: datetime | None
    cause: str | None
    """What became of it, if it did not end by itself."""


class LeaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a job now, and until when unless the lease is renewed."""

    epoch: int
    pilot_id: str
    phase: str
    expires_at: datetime


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One move of a job."""

    seq: int
    at: datetime
    event: str
    state: str
    epoch: int
    reason: str
    text: str
    source: str


class JobPage(msgspec.Struct, frozen=True, kw_only=True, tag="job-page"):
    """Answers ListJobs; `after` is the id to go on from, None at the end."""

    query_id: str
    client: str
    jobs: tuple[JobLine, ...]
    after: int | None


class SweepLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep as a list shows it: the jobs `first` to `last`."""

    first: int
    last: int
    name: str
    """As submitted: in each job's own its index and parameters stand in the place of the braces."""
    owner: str
    owner_group: str
    vo: str
    counts: dict[str, int]
    """How many of its jobs are in each state."""
    submitted_at: datetime
    job_group: Annotated[str, msgspec.Meta(max_length=200)] = ""


class SweepPage(msgspec.Struct, frozen=True, kw_only=True, tag="sweep-page"):
    """Answers ListSweeps; `after` is the id to go on from, None at the end."""

    query_id: str
    client: str
    sweeps: tuple[SweepLine, ...]
    after: int | None


class JobCounts(msgspec.Struct, frozen=True, kw_only=True, tag="job-counts"):
    """Answers CountJobs."""

    query_id: str
    client: str
    counts: dict[str, int]
    reasons: Annotated[dict[str, dict[str, int]], msgspec.Meta(max_length=100)] = {}
    """By state and reason, if that was asked for."""


class JobDetail(msgspec.Struct, frozen=True, kw_only=True, tag="job-detail"):
    """Answers ShowJob."""

    query_id: str
    client: str
    job: JobLine
    array_index: int | None
    """Its number in its sweep, which is the array's or that of the lists of parameters."""
    parameters: dict[str, str] = {}
    """Of a sweep's job, its own."""
    description: dict[str, Any]
    attempts: tuple[Attempt, ...]
    history: tuple[HistoryLine, ...]
    reason_text: str = ""
    """Of a waiting job why it waits, as was last found."""
    holders: tuple[HolderLine, ...] = ()
    """The pilots of its attempts."""
    lease: LeaseLine | None = None


class CeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one computing element says to one job."""

    site: str
    ce: str
    fits: bool
    clauses: tuple[str, ...] = ()
    """Every requirement that fails there, in words."""
    pilots: int = 0
    """Running ones of the job's VO."""
    free_slots: int = 0
    fresh: bool = True
    """It advertises itself now."""
    limits: tuple[str, ...] = ()
    """What holds the job back there although it fits."""
    coming: int = 0
    """Pilots on the way there."""
    slots: int = 0
    """Of the pilots that run."""
    avoid: str = ""
    """Why other elements are better for now, though the job may run there."""
    rank: float | None = None
    """What the job's own rank says of it, if the job has one and fits."""
    decided: tuple[str, ...] = ()
    """The terms of its requirements that the element's ad decides, where it fits."""
    forwarded: tuple[str, ...] = ()
    """What of them is asked of the batch system there, each with the option that says it."""
    on_node: tuple[str, ...] = ()
    """What of them nobody is asked for, and why: the job agent looks at its node before anything starts."""


class JobWhy(msgspec.Struct, frozen=True, kw_only=True, tag="job-why"):
    """Answers WhyJob: a sentence first, the evidence after it."""

    query_id: str
    client: str
    job_id: int
    state: str
    code: str
    """Of a waiting job its tier, from NEVER_POSSIBLE to SOON; else the reason of its last move."""
    summary: str
    advice: str = ""
    ahead: int | None = None
    """Jobs waiting in the same task queue, this one not counted."""
    elements: tuple[CeVerdict, ...] = ()
    """At most two hundred of them, those that are nearest to fitting first."""
    elements_total: int = 0
    elements_fitting: int = 0
    """Those that advertise themselves now and fit, whatever the limits."""
    failing: dict[str, int] = {}
    """By requirement: at how many computing elements it fails."""
    relaxations: tuple[Relaxation, ...] = ()
    """What the job could ask for instead, the change that opens the most slots first."""
    forecast: Forecast | None = None
    """Its place in its task queue and when it may start."""


class JobOutput(msgspec.Struct, frozen=True, kw_only=True, tag="job-output"):
    """Answers PeekJob; `offset` is that of the first byte in `text`, `size` what the job has printed so far."""

    query_id: str
    client: str
    job_id: int
    stream: str
    offset: int
    size: int
    text: str
    live: bool
    """The job was still running when this was read."""


class QueueLine(msgspec.Struct, frozen=True, kw_only=True):
    """A task queue as a list shows it."""

    tq_id: int
    owner: str
    owner_group: str
    vo: str
    cpu_segment: int
    waiting: int
    requirements: dict[str, Any]


class Queues(msgspec.Struct, frozen=True, kw_only=True, tag="queues"):
    """Answers ListQueues, fullest first."""

    query_id: str
    client: str
    queues: tuple[QueueLine, ...]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class JobsThere(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a computing element as its ad's source counts them, and as we do."""

    source: int
    """In any state, others' too: CurrentJobs."""
    source_submitting: int
    """Of these, those that do not run yet: CurrentSubmittingJobs."""
    pilots: int
    """Ours that have not ended."""
    jobs: int
    """Ours that run in these."""
    unseen: int
    """Pilots that were under way when the source counted: not among its jobs."""
    idle: int
    """Pilots among its jobs that had no job of ours."""
    pilots_left: int | None
    """Pilots that may be sent before the next ad; None: the ad states no limit."""
    jobs_left: int | None
    """Jobs that may be given to pilots there before the next ad."""


class SiteLine(msgspec.Struct, frozen=True, kw_only=True):
    """A computing element as a list shows it."""

    site: str
    ce: str
    dispatcher: str
    advertised_at: datetime
    expires_at: datetime
    fresh: bool
    ad: dict[str, Any]
    pilots: int
    running_jobs: int
    notices: tuple[str, ...] = ()
    """What keeps jobs and pilots from it: "suppress: 40 of 40 jobs (MaxJobs)"; likewise "delay" and "avoid"."""
    jobs_there: JobsThere | None = None
    state: str = "healthy"
    """One of `wms.provisioning.health.STATES`, its site's where that is avoided as a whole."""
    until: datetime | None = None
    reason: str = ""
    said_by: str = ""


class Sites(msgspec.Struct, frozen=True, kw_only=True, tag="sites"):
    """Answers ListSites."""

    query_id: str
    client: str
    sites: tuple[SiteLine, ...]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class PilotLine(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot as a list shows it."""

    pilot_id: str
    site: str
    ce: str
    vo: str
    state: str
    slots: int
    busy: int
    jobs_done: int
    submitted_at: datetime
    seen_at: datetime | None
    reason: str


class Pilots(msgspec.Struct, frozen=True, kw_only=True, tag="pilots"):
    """Answers ListPilots."""

    query_id: str
    client: str
    pilots: tuple[PilotLine, ...]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class PilotDetail(msgspec.Struct, frozen=True, kw_only=True, tag="pilot-detail"):
    """Answers ShowPilot."""

    query_id: str
    client: str
    pilot: PilotLine
    dispatcher: str
    reference: str | None
    """What its element calls it."""
    started_at: datetime | None
    ended_at: datetime | None
    word: str | None
    """What its element said of it last, and when."""
    word_at: datetime | None
    cause: str | None
    """What became of it, if it did not end by itself."""
    output: str | None
    """The end of what it printed; None as long as it was not fetched, which is some time after its end."""
    refused_orders: int = 0
    """Messages to it that no service had signed: any says that somebody forges orders."""


class Ruled(msgspec.Struct, frozen=True, kw_only=True, tag="ruled"):
    """A rule holds from now on; matchers apply it within seconds."""

    command_id: CommandId
    client: str
    said: str
    """What holds, in words."""
    repeated: bool = False
    jobs: tuple[int, ...] = ()
    """Of a test, the canaries that are out."""


class ShareLine(msgspec.Struct, frozen=True, kw_only=True):
    """A group's share and how it stands."""

    vo: str
    owner_group: str
    job_share: float
    job_sharing: bool
    background: bool
    source: str
    """`set` at run time, of the `file`, or the `default`."""
    said_by: str = ""
    owners: int = 0
    """With waiting jobs."""
    waiting_jobs: int = 0
    running_jobs: int = 0
    """With a pilot."""
    used_hours: float = 0.0
    """Of processors, in ended attempts, halved every half-life; 0 where usage does not count."""
    effective_share: float | None = None
    """The share as it counts by that usage; of an older job manager, none."""


class Shares(msgspec.Struct, frozen=True, kw_only=True, tag="shares"):
    """Answers ListShares."""

    query_id: str
    client: str
    shares: tuple[ShareLine, ...]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class LimitLine(msgspec.Struct, frozen=True, kw_only=True):
    """A limit and who said it."""

    limit: Limit
    lifted: bool = False
    """The file says it, and at run time it was said not to hold."""
    source: str
    """`set` at run time, or of the `file`."""
    said_by: str = ""


class CountLine(msgspec.Struct, frozen=True, kw_only=True):
    """How far something is that a limit counts."""

    site: str
    ce: str
    attribute: str
    value: str
    running: int


class LimitList(msgspec.Struct, frozen=True, kw_only=True, tag="limit-list"):
    """Answers ListLimits; of owners, each is told of its own counts alone, but for operators."""

    query_id: str
    client: str
    limits: tuple[LimitLine, ...]
    counts: tuple[CountLine, ...]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class SiteMove(msgspec.Struct, frozen=True, kw_only=True):
    """One change of how an element, or with `ce` empty its site, is."""

    at: datetime
    site: str
    ce: str
    before: str
    event: str
    state: str
    reason: str
    said_by: str


class CanaryLine(msgspec.Struct, frozen=True, kw_only=True):
    """A job by which an element was tried; `outcome` is empty while it is out."""

    job_id: int
    site: str
    ce: str
    sent_at: datetime
    asked_by: str
    outcome: str


class PlanLine(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner last decided of an element, and since when."""

    decided_at: datetime
    decision: Decision


class SiteDetail(msgspec.Struct, frozen=True, kw_only=True, tag="site-detail"):
    """Answers ShowSite; histories are newest first, at most a hundred of each."""

    query_id: str
    client: str
    elements: tuple[SiteLine, ...]
    moves: tuple[SiteMove, ...] = ()
    canaries: tuple[CanaryLine, ...] = ()
    plans: tuple[PlanLine, ...] = ()


class Plans(msgspec.Struct, frozen=True, kw_only=True, tag="plans"):
    """Answers ListPlans."""

    query_id: str
    client: str
    plans: tuple[PlanLine, ...]
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
)
