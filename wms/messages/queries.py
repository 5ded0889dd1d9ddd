"""The topic `wms.job.queries`: questions of users. Key: the owner. A query never changes anything."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.agreement.state import AgreementState
from wms.bounds import (
    AgreementName,
    Bytes,
    Client,
    JobNumber,
    MessageId,
    Moment,
    Name,
    PilotName,
    Total,
    Word,
)
from wms.ids import Epoch
from wms.job.state import State
from wms.messages.commands import Selector

TOPIC = "wms.job.queries"

PAGE_LIMIT = 1_000


class Query(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The base class of all queries. The reply repeats `query_id`; `client` is the user's tool that waits for it."""

    query_id: MessageId
    client: Client = ""


class ListJobs(Query, frozen=True, kw_only=True, tag="list-jobs"):
    """Asks for a page of the chosen jobs, by rising id, or falling with `newest`. `after` is the last id of the page before."""

    selector: Selector
    after: JobNumber | None = None
    newest: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100
    alone: bool = False
    """Whether to list only jobs that belong to no job array."""
    results: bool = False
    """Whether to tell of each job how its last attempt went, where its details may be seen."""


class ListSweeps(Query, frozen=True, kw_only=True, tag="list-sweeps"):
    """Asks for a page of job arrays with the number of their jobs by state, in ascending order of ids, or descending with `newest`.

    `after` is the last id of the page before.
    """

    owner: Name | None = None
    states: Annotated[tuple[State, ...], msgspec.Meta(max_length=32)] = ()
    """Only arrays with a job in one of these states; empty for any. The counts are of all jobs of the array."""
    after: JobNumber | None = None
    newest: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100
    job_group: Name | None = None
    changed_since: Moment | None = None
    """Only arrays that were submitted, or of which a job changed its state, at this time or later."""


class CountJobs(Query, frozen=True, kw_only=True, tag="count-jobs"):
    """Asks how many of the chosen jobs are in each state."""

    selector: Selector
    by_reason: bool = False
    """Whether to count each state by reason too."""
    in_pieces: bool = False
    """Whether the answer may count the newest jobs alone, if there are very many. Else such a count is refused."""
    below: JobNumber | None = None
    """Where the answer before ended (`counted_from`): only jobs with lower ids are counted. None to begin a count."""


class ShowJob(Query, frozen=True, kw_only=True, tag="show-job"):
    """Asks for everything about one job: description, attempts, and history with reasons."""

    job_id: JobNumber


class WhyJob(Query, frozen=True, kw_only=True, tag="why-job"):
    """Asks why a job is in its state. For a waiting job: which requirement excludes it from each computing element."""

    job_id: JobNumber


class PeekJob(Query, frozen=True, kw_only=True, tag="peek-job"):
    """Asks for a part of what a job printed: from its pilot while it runs, else from its last attempt."""

    job_id: JobNumber
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: Bytes | None = None
    """The first byte to return; None for the last `limit` bytes."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 16_384
    raw: bool = False
    """Whether the text is wanted as it was printed, with characters that can take a terminal over."""
    whole: bool = False
    """Whether `offset` counts all bytes that were printed, of an ended job too. Without it, it counts those that are stored."""


class PagedQuery(Query, frozen=True, kw_only=True):
    """The base class of queries for lists that come in pages.

    `after` is the number of entries to leave out and `limit` the most to return. A page is never larger than a message.
    """

    after: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT


class ListQueues(PagedQuery, frozen=True, kw_only=True, tag="list-queues"):
    """Asks for the task queues with waiting jobs: requirements, number of jobs and owner, the fullest first."""


class ListSites(PagedQuery, frozen=True, kw_only=True, tag="list-sites"):
    """Asks for the computing elements that have an ad at present, with their sites."""


class ShowSite(Query, frozen=True, kw_only=True, tag="show-site"):
    """Asks for everything about a site, or with `ce` one computing element: health, history, test jobs and planned pilots."""

    site: Name
    ce: Name = ""


class ListPlans(PagedQuery, frozen=True, kw_only=True, tag="list-plans"):
    """Asks for the last decision on each computing element: how many pilots to send there, and why."""


class ListPilots(PagedQuery, frozen=True, kw_only=True, tag="list-pilots"):
    """Asks for the pilots that have not ended, and with `ended` for the ended ones after them."""

    ended: bool = False


class ShowPilot(Query, frozen=True, kw_only=True, tag="show-pilot"):
    """Asks for everything about one pilot, with the output that it printed."""

    pilot_id: PilotName


class ListPilotOrders(PagedQuery, frozen=True, kw_only=True, tag="list-pilot-orders"):
    """Asks for the orders for private pilots that the sender may see, the newest first."""


class ListShares(PagedQuery, frozen=True, kw_only=True, tag="list-shares"):
    """Asks for the fair shares of groups, and how much each uses at present."""


class ListLimits(PagedQuery, frozen=True, kw_only=True, tag="list-limits"):
    """Asks for the limits on jobs that are in force, and the present counts."""


class ShowRanking(Query, frozen=True, kw_only=True, tag="show-ranking"):
    """Asks how the resource broker placed a job: the ranked computing elements with predictions and reasons, and the placements."""

    job_id: JobNumber


class ListPredictions(Query, frozen=True, kw_only=True, tag="list-predictions"):
    """Asks how well the resource broker's predictions of times came true, by site, by predictor or by both."""

    by: Literal["site", "predictor", "both"] = "both"


class ReservationCursor(msgspec.Struct, frozen=True):
    """The last entry of a page of reservations, after which the next page begins.

    `at` is the time when the reservation was requested. Reservations are listed by this time, the newest first.
    """

    at: Moment
    agreement_id: AgreementName


class ListReservations(Query, frozen=True, kw_only=True, tag="list-reservations"):
    """Asks for a page of the reservations that the sender may see, the newest first. An empty value, or None, sets no condition."""

    job_id: JobNumber | None = None
    owner: Name = ""
    site: Name = ""
    ce: Name = ""
    states: Annotated[tuple[AgreementState, ...], msgspec.Meta(max_length=32)] = ()
    """The states to list. Empty: all states in which CPUs are reserved or the site still decides."""
    after: ReservationCursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100


class WhoAmI(Query, frozen=True, kw_only=True, tag="who-am-i"):
    """Asks what the system knows of the sender: identity, rights, and when the token expires."""


class ListAuditTrail(Query, frozen=True, kw_only=True, tag="list-audit-trail"):
    """Asks for a page of the audit trail: orders and refusals that the sender may see, the newest first.

    Empty conditions exclude none.
    """

    owner: Name = ""
    action: Word = ""
    """The kind of order, such as `kill`, `set-share` or `revoke`; empty for all."""
    site: Name = ""
    job_id: JobNumber | None = None
    """Only orders that name this job by its id; None: all."""
    refused: bool = False
    """Whether to list only orders that were refused."""
    since: Moment | None = None
    before: JobNumber | None = None
    """Only entries with numbers below this one are listed; None: all."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100


class ListRevocations(PagedQuery, frozen=True, kw_only=True, tag="list-revocations"):
    """Asks for the revocations in force, the newest first."""


class ListDeadLetters(Query, frozen=True, kw_only=True, tag="list-dead-letters"):
    """Asks for a page of dead letters (messages that could not be handled), the newest first. Only operators may ask."""

    consumer: Name = ""
    """Only dead letters of this consumer; empty: of all consumers."""
    replayed: bool = False
    """Whether to list also dead letters that were replayed successfully."""
    before: Total | None = None
    """Only dead letters with ids below this one are listed; None: all."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)] = 100


class ShowDeadLetter(Query, frozen=True, kw_only=True, tag="show-dead-letter"):
    """Asks for everything that is stored of a dead letter (a message that could not be handled). Only operators may ask."""

    letter: Total


UsageBy: TypeAlias = Literal["vo", "group", "owner", "site", "month", "day"]


class ShowUsage(PagedQuery, frozen=True, kw_only=True, tag="show-usage"):
    """Asks for the resources that jobs used, of the jobs that the sender may see, summed up by some of their properties."""

    by: Annotated[tuple[UsageBy, ...], msgspec.Meta(max_length=6)] = ()
    """The properties by which usage is summed up; empty: one sum over everything. Months and days are in UTC."""
    since: Moment
    """The start of the report: attempts that ended in this hour or later are summed up."""
    until: Moment | None = None
    """The end of the report: attempts that ended before this time are summed up; None: until now."""


class ShowLease(Query, frozen=True, kw_only=True, tag="show-lease"):
    """Asks whether the pilot that sends the query holds the lease of an attempt. Senders that are no pilots are refused."""

    job_id: JobNumber
    epoch: Epoch


class ShowOverview(Query, frozen=True, kw_only=True, tag="show-overview"):
    """Asks how attempts and pilots ended within the last hour, why jobs wait, and for the health of the services."""


class ShowProgress(Query, frozen=True, kw_only=True, tag="show-progress"):
    """Asks for the numbers of jobs by state of job groups and job arrays, and how many of these jobs ended lately.

    Groups and arrays whose jobs have all ended, the last one over a week ago, are left out.
    """

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
    | WhoAmI
    | ListAuditTrail
    | ListRevocations
    | ShowUsage
    | ShowLease
    | ShowOverview
    | ShowProgress
    | ListDeadLetters
    | ShowDeadLetter
)
