"""`wms.job.queries`: queries of users. Key: the owner. A query never changes anything."""

from typing import Annotated, Literal

import msgspec

from wms.agreement.state import AgreementState
from wms.bounds import AgreementName, Bytes, Client, JobNumber, MessageId, Moment, Name, PilotName
from wms.job.state import State
from wms.messages.commands import Selector

TOPIC = "wms.job.queries"

PAGE_LIMIT = 1_000


class Query(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The fields of all queries: an id that the reply repeats, and the id of the tool that waits for the reply."""

    query_id: MessageId
    client: Client = ""


class ListJobs(Query, frozen=True, kw_only=True, tag="list-jobs"):
    """A query for a page of jobs by ascending id (descending with `newest`), after the id `after`."""

    selector: Selector
    after: JobNumber | None = None
    newest: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100
    alone: bool = False
    """Whether to list only jobs that belong to no sweep."""


class ListSweeps(Query, frozen=True, kw_only=True, tag="list-sweeps"):
    """A query for a page of sweeps by ascending id (descending with `newest`), after the id `after`, each with its jobs by state."""

    owner: Name | None = None
    states: Annotated[tuple[State, ...], msgspec.Meta(max_length=32)] = ()
    """States of which a sweep must have a job in one; all jobs of the sweep are counted."""
    after: JobNumber | None = None
    newest: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100
    job_group: Name | None = None
    changed_since: Moment | None = None
    """The time since which a sweep must have been submitted, or one of its jobs have changed its state."""


class CountJobs(Query, frozen=True, kw_only=True, tag="count-jobs"):
    """A query for the number of selected jobs in each state."""

    selector: Selector
    by_reason: bool = False
    """Whether to count by reason as well."""


class ShowJob(Query, frozen=True, kw_only=True, tag="show-job"):
    """A query for one job in full: description, attempts, history with reasons."""

    job_id: JobNumber


class WhyJob(Query, frozen=True, kw_only=True, tag="why-job"):
    """A query for the reason of a job's state; for a waiting job, the clause that excludes it from each computing element."""

    job_id: JobNumber


class PeekJob(Query, frozen=True, kw_only=True, tag="peek-job"):
    """A query for the last bytes that a job has printed: from its pilot while it runs, else from its last attempt."""

    job_id: JobNumber
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: Bytes | None = None
    """The first byte to return; None for the last `limit` bytes."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 16_384


class PagedQuery(Query, frozen=True, kw_only=True):
    """The fields of queries for lists by page: the entries after the first `after`, at most `limit`, and at most one message full."""

    after: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT


class ListQueues(PagedQuery, frozen=True, kw_only=True, tag="list-queues"):
    """A query for the task queues with waiting jobs: requirements, jobs, priority."""


class ListSites(PagedQuery, frozen=True, kw_only=True, tag="list-sites"):
    """A query for the sites and computing elements with an ad at present."""


class ShowSite(Query, frozen=True, kw_only=True, tag="show-site"):
    """A query for a site, or one of its elements, in full: its state and history, its canaries, and the planner's last decision."""

    site: Name
    ce: Name = ""


class ListPlans(PagedQuery, frozen=True, kw_only=True, tag="list-plans"):
    """A query for the planner's last decision on each element, with the reason."""


class ListPilots(PagedQuery, frozen=True, kw_only=True, tag="list-pilots"):
    """A query for the pilots, alive ones first."""

    ended: bool = False


class ShowPilot(Query, frozen=True, kw_only=True, tag="show-pilot"):
    """A query for one pilot in full, with its output."""

    pilot_id: PilotName


class ListPilotOrders(PagedQuery, frozen=True, kw_only=True, tag="list-pilot-orders"):
    """A query for the orders of private pilots that the sender may see, newest first."""


class ListShares(PagedQuery, frozen=True, kw_only=True, tag="list-shares"):
    """A query for the shares of groups, and their present usage."""


class ListLimits(PagedQuery, frozen=True, kw_only=True, tag="list-limits"):
    """A query for the limits in force, and the present counts."""


class ShowRanking(Query, frozen=True, kw_only=True, tag="show-ranking"):
    """A query for the record of a brokered job: the elements that were ranked, with predictions and reasons, and its placements."""

    job_id: JobNumber


class ListPredictions(Query, frozen=True, kw_only=True, tag="list-predictions"):
    """A query for how true the broker's predictions were, by site, by predictor or by both."""

    by: Literal["site", "predictor", "both"] = "both"


class ReservationCursor(msgspec.Struct, frozen=True):
    """The end of a page of reservations, which are ordered by the time when they were asked for, the newest first."""

    at: Moment
    agreement_id: AgreementName


class ListReservations(Query, frozen=True, kw_only=True, tag="list-reservations"):
    """A query for a page of reservations that the sender may see, the newest first; empty conditions stand for all."""

    job_id: JobNumber | None = None
    owner: Name = ""
    site: Name = ""
    ce: Name = ""
    states: Annotated[tuple[AgreementState, ...], msgspec.Meta(max_length=32)] = ()
    """The states to list; without any, those in which something is or may become reserved."""
    after: ReservationCursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100


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
    | ShowRanking
    | ListPredictions
    | ListReservations
)
