"""`wms.job.queries`: what users ask to be told. Key: the owner. Nothing here changes anything."""

from typing import Annotated, Literal

import msgspec

from wms.bounds import Bytes, Client, JobNumber, MessageId, Moment, Name, PilotName
from wms.job.state import State
from wms.messages.commands import Selector

TOPIC = "wms.job.queries"

PAGE_LIMIT = 1_000


class Query(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What all queries carry: an id that the reply repeats, and the tool that waits for it."""

    query_id: MessageId
    client: Client = ""


class ListJobs(Query, frozen=True, kw_only=True, tag="list-jobs"):
    """A page of jobs by ascending id (descending with `newest`), after `after`."""

    selector: Selector
    after: JobNumber | None = None
    newest: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100
    alone: bool = False
    """Only jobs that are of no sweep."""


class ListSweeps(Query, frozen=True, kw_only=True, tag="list-sweeps"):
    """A page of sweeps by ascending id (descending with `newest`), after `after`, each with its jobs by state."""

    owner: Name | None = None
    states: Annotated[tuple[State, ...], msgspec.Meta(max_length=32)] = ()
    """Only sweeps that have a job in one of these; all their jobs are counted."""
    after: JobNumber | None = None
    newest: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100
    job_group: Name | None = None
    changed_since: Moment | None = None
    """Only sweeps that were submitted since then, or that have a job that changed its state since."""


class CountJobs(Query, frozen=True, kw_only=True, tag="count-jobs"):
    """How many of the selected jobs are in each state."""

    selector: Selector
    by_reason: bool = False
    """For which reasons, too."""


class ShowJob(Query, frozen=True, kw_only=True, tag="show-job"):
    """One job whole: description, attempts, history with reasons."""

    job_id: JobNumber


class WhyJob(Query, frozen=True, kw_only=True, tag="why-job"):
    """Why the job is where it is, and for a waiting one which clause keeps it from each computing element."""

    job_id: JobNumber


class PeekJob(Query, frozen=True, kw_only=True, tag="peek-job"):
    """The last bytes that the job has printed so far: from its pilot while it runs, else from its last attempt."""

    job_id: JobNumber
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: Bytes | None = None
    """From this byte on; without it the last `limit` bytes."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 16_384


class PagedQuery(Query, frozen=True, kw_only=True):
    """What asks for a list by pages: the entries after the first `after`, at most `limit`, and no more than a message holds."""

    after: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT


class ListQueues(PagedQuery, frozen=True, kw_only=True, tag="list-queues"):
    """The task queues with waiting jobs: requirements, jobs, priority."""


class ListSites(PagedQuery, frozen=True, kw_only=True, tag="list-sites"):
    """The sites and computing elements that advertise themselves now."""


class ShowSite(Query, frozen=True, kw_only=True, tag="show-site"):
    """A site, or one element of it, whole: how it is, how it came so, its canaries, and what the planner decides of it."""

    site: Name
    ce: Name = ""


class ListPlans(PagedQuery, frozen=True, kw_only=True, tag="list-plans"):
    """What the planner last decided of each element, and why."""


class ListPilots(PagedQuery, frozen=True, kw_only=True, tag="list-pilots"):
    """The pilots, alive ones first."""

    ended: bool = False


class ShowPilot(Query, frozen=True, kw_only=True, tag="show-pilot"):
    """One pilot whole, with what it printed."""

    pilot_id: PilotName


class ListPilotOrders(PagedQuery, frozen=True, kw_only=True, tag="list-pilot-orders"):
    """The orders for private pilots in the asker's reach, the newest first."""


class ListShares(PagedQuery, frozen=True, kw_only=True, tag="list-shares"):
    """What groups are entitled to, and how they stand."""


class ListLimits(PagedQuery, frozen=True, kw_only=True, tag="list-limits"):
    """Which limits hold, and how far what they count is."""


Asked = (
    ListJobs
    | ListSweeps
    | CountJobs
    | ShowJob
    | WhyJob
    | PeekJob
    | ListQueues
    | ListSites
    | ListPilots
    | ShowPilot
    | ListShares
    | ListLimits
    | ShowSite
    | ListPlans
    | ListPilotOrders
)
