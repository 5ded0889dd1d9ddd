"""A client with read-only requests about jobs, sites, queues, pilots, shares and limits."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal, Self, TypeAlias, TypeVar

import msgspec

from wms.agreement.state import AgreementState
from wms.client.channel import Channel
from wms.client.chosen_channel import channel_of
from wms.client.credential import TokenFile, UserCredential
from wms.client.job_description import description_of
from wms.client.selector import normalised
from wms.client.settings import ClientSettings, read_settings
from wms.client.submission import new_id
from wms.errors import Rejected
from wms.job.state import State
from wms.jobdesc.description import JobDescription
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.commands import Selector
from wms.runtime import clock

A = TypeVar("A", bound=msgspec.Struct)
P = TypeVar(
    "P",
    replies.Queues,
    replies.Sites,
    replies.Plans,
    replies.Pilots,
    replies.Shares,
    replies.LimitList,
    replies.PilotOrders,
)
Counts: TypeAlias = dict[str, int]

CONNECT_SECONDS = 15.0
TIMEOUT_SECONDS = 30.0
PAGES_LIMIT = 1_000
FETCHES_AT_ONCE = 8
DESCRIPTIONS_LIMIT = 1_000
SWEEPS_PAGE = 50
"""How many sweeps (job arrays) a page has. The number is small because counting the jobs of large sweeps takes long."""


class QueryClient:
    """A user's connection to the system, with the calls that only read. `Client` adds the calls that change something."""

    def __init__(self, settings: ClientSettings, exchange: Channel, timeout: float) -> None:
        self.settings = settings
        self.timeout = timeout
        self._exchange = exchange

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        settings: ClientSettings | Path | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        patience: float = CONNECT_SECONDS,
    ) -> AsyncIterator[Self]:
        """Connect to the system that `settings` describes, or whose data directory is given (None: the usual one).

        `timeout` bounds each call of the client, in seconds. The connection is tried for `patience` seconds, since a broker
        may be restarting. Raise Rejected if no system is set up there, or if the token is missing or has expired. Raise
        Unavailable if no broker or gateway answers.
        """
        if not isinstance(settings, ClientSettings):
            settings = read_settings(settings)
        exchange = channel_of(settings)
        await exchange.open(min(timeout, patience))
        try:
            yield cls(settings, exchange, timeout)
        finally:
            await exchange.close()

    def credential(self) -> UserCredential:
        """Return the token in use with its claims. Raise Rejected if it is missing or has expired."""
        return TokenFile(Path(self.settings.auth.token_file)).read(clock.timestamp())

    # --- jobs ---------------------------------------------------------------------------------------------------------

    async def jobs(
        self,
        selector: Selector,
        *,
        newest: bool = False,
        limit: int | None = None,
        alone: bool = False,
        results: bool = False,
    ) -> AsyncIterator[replies.JobLine]:
        """Yield the selected jobs by ascending id, at most `limit` of them (None: all).

        They are fetched page by page, so that any number can be listed. If `newest` is True, the ids descend. If `alone` is
        True, only jobs that belong to no sweep (job array) are listed. With `results`, each line has how the job went.
        """
        after: int | None = None
        left = limit
        while left is None or left > 0:
            size = asked.PAGE_LIMIT if left is None else min(left, asked.PAGE_LIMIT)
            page = await self._list(selector, after, newest=newest, size=size, alone=alone, results=results)
            for job in page.jobs:
                yield job
            if page.after is None:
                return
            after = page.after
            left = None if left is None else left - len(page.jobs)

    async def sweeps(
        self,
        *,
        owner: str | None = None,
        states: Sequence[State] = (),
        newest: bool = False,
        limit: int | None = None,
        group: str | None = None,
        since: datetime | None = None,
    ) -> AsyncIterator[replies.SweepLine]:
        """Yield the sweeps (job arrays) with a job in one of `states` (none: any state), each with its number of jobs by state.

        The order is by ascending id, or descending if `newest` is True. Only sweeps that meet every other given condition are
        listed: the owner, the job group, submitted or changed `since`. At most `limit` sweeps are listed (None: all).
        """
        after: int | None = None
        left = limit
        while left is None or left > 0:
            size = SWEEPS_PAGE if left is None else min(left, SWEEPS_PAGE)
            query = asked.ListSweeps(
                query_id=new_id(),
                client=self._exchange.client,
                owner=owner,
                states=tuple(states),
                after=after,
                newest=newest,
                limit=size,
                job_group=group,
                changed_since=since,
            )
            page = await self._ask(query, replies.SweepPage)
            for sweep in page.sweeps:
                yield sweep
            if page.after is None:
                return
            after = page.after
            left = None if left is None else left - len(page.sweeps)

    async def counts(self, selector: Selector) -> Counts:
        """Return the number of selected jobs by state.

        Very many jobs are counted with several queries, each job once. Numbers for which 20,000 jobs or more were
        looked at may be two seconds old; others are as of now.
        """
        found = Counter[str]()
        async for piece in self._counted(selector):
            found.update(piece.counts)
        return dict(found)

    async def reasons(self, selector: Selector) -> dict[str, Counts]:
        """Return the number of selected jobs by state, separately for each reason that jobs have for their state."""
        found: dict[str, Counter[str]] = {}
        async for piece in self._counted(selector, by_reason=True):
            for state, reasons in piece.reasons.items():
                found.setdefault(state, Counter()).update(reasons)
        return {state: dict(reasons) for state, reasons in found.items()}

    async def _counted(
        self, selector: Selector, *, by_reason: bool = False
    ) -> AsyncIterator[replies.JobCounts]:
        below: int | None = None
        while True:
            query = asked.CountJobs(
                query_id=new_id(),
                client=self._exchange.client,
                selector=normalised(selector),
                by_reason=by_reason,
                in_pieces=True,
                below=below,
            )
            piece = await self._ask(query, replies.JobCounts)
            yield piece
            if piece.counted_from is None:
                return
            below = piece.counted_from

    async def show(self, job_id: int) -> replies.JobDetail:
        """Return all details of one job: description, attempts, history with reasons.

        Raise Rejected if there is no such job, or if you may not see it.
        """
        query = asked.ShowJob(query_id=new_id(), client=self._exchange.client, job_id=job_id)
        return await self._ask(query, replies.JobDetail)

    async def descriptions(self, selector: Selector) -> list[JobDescription]:
        """Return for each selected job a description that, if submitted, makes a job like it.

        Raise Rejected if no job is selected, or more than a thousand are.
        """
        found = [job.job_id async for job in self.jobs(selector, limit=DESCRIPTIONS_LIMIT + 1)]
        if not found:
            raise Rejected("NO_SUCH_JOB", "there is no such job", "`wms jobs` lists yours")
        if len(found) > DESCRIPTIONS_LIMIT:
            message = f"these are more than {DESCRIPTIONS_LIMIT:,} jobs"
            raise Rejected("TOO_MANY_JOBS", message, "name fewer, or submit their sweep anew")
        gate = asyncio.Semaphore(FETCHES_AT_ONCE)

        async def one(job_id: int) -> JobDescription:
            async with gate:
                return description_of(await self.show(job_id))

        return list(await asyncio.gather(*map(one, found)))

    async def why(self, job_id: int) -> replies.JobWhy:
        """Return why the job is in its state.

        For a waiting job the answer names the failed requirement at each computing element.
        """
        query = asked.WhyJob(query_id=new_id(), client=self._exchange.client, job_id=job_id)
        return await self._ask(query, replies.JobWhy)

    async def ranking(self, job_id: int) -> replies.JobRanking:
        """Return the broker's record of a job: ranked elements, placements, agreements.

        Raise Rejected if the broker does not place the job.
        """
        query = asked.ShowRanking(query_id=new_id(), client=self._exchange.client, job_id=job_id)
        return await self._ask(query, replies.JobRanking)

    async def predictions(
        self, by: Literal["site", "predictor", "both"] = "both"
    ) -> tuple[replies.CalibrationLine, ...]:
        """Return how well the broker's predictions of jobs' ends came true, summed up by site, by predictor or by both."""
        query = asked.ListPredictions(query_id=new_id(), client=self._exchange.client, by=by)
        return (await self._ask(query, replies.Calibrations)).lines

    async def reservations(
        self,
        *,
        job: int | None = None,
        owner: str = "",
        site: str = "",
        ce: str = "",
        states: Sequence[AgreementState] = (),
        limit: int | None = None,
    ) -> AsyncIterator[replies.ReservationLine]:
        """Yield the reservations that you may see, the newest first, at most `limit` (None: a million).

        They are fetched page by page. Only reservations that meet every given condition are listed. Without `states`, those that
        have ended are left out.
        """
        after: asked.ReservationCursor | None = None
        left = PAGES_LIMIT * asked.PAGE_LIMIT if limit is None else limit
        while left > 0:
            query = asked.ListReservations(
                query_id=new_id(),
                client=self._exchange.client,
                job_id=job,
                owner=owner,
                site=site,
                ce=ce,
                states=tuple(states),
                after=after,
                limit=min(left, asked.PAGE_LIMIT),
            )
            page = await self._ask(query, replies.Reservations)
            for line in page.lines:
                yield line
            if page.after is None:
                return
            after = page.after
            left -= len(page.lines)

    async def peek(
        self,
        job_id: int,
        stream: Literal["stdout", "stderr"] = "stdout",
        *,
        offset: int | None = None,
        limit: int = 16_384,
        raw: bool = False,
        whole: bool = False,
    ) -> replies.JobOutput:
        """Return a piece of the job's output: at most `limit` bytes from `offset` on, or the last bytes if `offset` is None.

        Unless `raw`, colours are left out and unsafe characters escaped. Of an ended job the last bytes alone are stored. With `whole`,
        `offset` and the positions in the answer count all bytes that the job printed.
        """
        query = asked.PeekJob(
            query_id=new_id(),
            client=self._exchange.client,
            job_id=job_id,
            stream=stream,
            offset=offset,
            limit=limit,
            raw=raw,
            whole=whole,
        )
        return await self._ask(query, replies.JobOutput)

    async def queues(self) -> tuple[replies.QueueLine, ...]:
        """Return the task queues with waiting jobs, the queue with the most jobs first."""
        pages = await self._pages(asked.ListQueues, replies.Queues)
        return tuple(each for page in pages for each in page.queues)

    async def sites(self) -> tuple[replies.SiteLine, ...]:
        """Return the computing elements that advertise themselves, one line for each."""
        pages = await self._pages(asked.ListSites, replies.Sites)
        return tuple(each for page in pages for each in page.sites)

    async def site(self, site: str, ce: str = "") -> replies.SiteDetail:
        """Return the state, history, canaries and planner's decision of a site, or of its computing element `ce`.

        Raise Rejected if there is no such site.
        """
        query = asked.ShowSite(query_id=new_id(), client=self._exchange.client, site=site, ce=ce)
        return await self._ask(query, replies.SiteDetail)

    async def plans(self) -> tuple[replies.PlanLine, ...]:
        """Return the planner's last decision on each computing element, with its reasons."""
        pages = await self._pages(asked.ListPlans, replies.Plans)
        return tuple(each for page in pages for each in page.plans)

    async def pilots(self, *, ended: bool = False) -> tuple[replies.PilotLine, ...]:
        """Return the pilots that have not ended. If `ended` is True, pilots that have ended follow them."""
        pages = await self._pages(partial(asked.ListPilots, ended=ended), replies.Pilots)
        return tuple(each for page in pages for each in page.pilots)

    async def pilot(self, pilot_id: str) -> replies.PilotDetail:
        """Return all details of a pilot, with its output if that was fetched.

        Raise Rejected if the pilot does not exist, or if you may not see it.
        """
        query = asked.ShowPilot(query_id=new_id(), client=self._exchange.client, pilot_id=pilot_id)
        return await self._ask(query, replies.PilotDetail)

    async def pilot_orders(self) -> tuple[replies.PilotOrderLine, ...]:
        """Return your orders for private pilots, the newest first. Administrators also get other users' orders."""
        pages = await self._pages(asked.ListPilotOrders, replies.PilotOrders)
        return tuple(each for page in pages for each in page.orders)

    async def shares(self) -> tuple[replies.ShareLine, ...]:
        """Return the shares and the use of the groups of your VO, or of all VOs if you administer them."""
        pages = await self._pages(asked.ListShares, replies.Shares)
        return tuple(each for page in pages for each in page.shares)

    async def limits(self) -> replies.LimitList:
        """Return the limits on jobs in force, and how far each is used up."""
        first, *others = await self._pages(asked.ListLimits, replies.LimitList)
        limits = (*first.limits, *(each for page in others for each in page.limits))
        counts = (*first.counts, *(each for page in others for each in page.counts))
        return msgspec.structs.replace(first, limits=limits, counts=counts, after=None)

    async def _ask(self, query: asked.Query, answer: type[A]) -> A:
        return await self._exchange.ask(asked.TOPIC, query.query_id, query, answer, self.timeout)

    async def _pages(self, query: Callable[..., asked.PagedQuery], answer: type[P]) -> list[P]:
        """Return all pages of a list, at most PAGES_LIMIT. `query` makes the request of a page, `answer` is the type of the pages."""
        pages: list[P] = []
        after: int | None = 0
        while after is not None and len(pages) < PAGES_LIMIT:
            asking = query(query_id=new_id(), client=self._exchange.client, after=after)
            pages.append(await self._ask(asking, answer))
            after = pages[-1].after
        return pages

    async def _list(
        self,
        selector: Selector,
        after: int | None,
        *,
        newest: bool,
        size: int,
        alone: bool,
        results: bool,
    ) -> replies.JobPage:
        query = asked.ListJobs(
            query_id=new_id(),
            client=self._exchange.client,
            selector=normalised(selector),
            after=after,
            newest=newest,
            limit=size,
            alone=alone,
            results=results,
        )
        return await self._ask(query, replies.JobPage)
