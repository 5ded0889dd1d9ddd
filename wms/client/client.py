"""The client: everything that a user may ask of the system, as methods."""
# ruff: noqa: A002 - what makes a call repeatable is its id, and users call it so

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal, Self, TypeAlias, TypeVar

import msgspec

from wms.client.credential import TokenFile, UserCredential
from wms.client.exchange import Exchange
from wms.client.files import Fetched, fetch, members, output_of
from wms.client.job_description import description_of
from wms.client.job_events import JobEvents
from wms.client.job_inputs import Progress, archives
from wms.client.settings import ClientSettings, read_settings
from wms.client.submission import Submission, check_id, messages, rehearsals
from wms.client.watching import JobWatch, pinned
from wms.errors import Rejected, Unavailable, WmsError
from wms.ids import CommandId, joined
from wms.job.state import ENDED, State
from wms.jobdesc.changes import read_changes
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.matching.limits import Kind, LimitKey, LimitRule
from wms.messages import commands as ordered
from wms.messages import limits as limited
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.commands import Control, Selector
from wms.runtime import clock
from wms.transfer import SandboxStore, open_store, upload

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
Action: TypeAlias = Literal["kill", "hold", "stop_and_hold", "release", "reschedule", "remove", "edit"]

CONNECT_SECONDS = 15.0
TIMEOUT_SECONDS = 30.0
PAGES_LIMIT = 1_000
UPLOADS_AT_ONCE = 4
FETCHES_AT_ONCE = 8
DESCRIPTIONS_LIMIT = 1_000
SWEEPS_PAGE = 50
"""Counting the jobs of many large sweeps takes its time."""
FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 0.2, 2.0


class Client:
    """A user's connection to the system; any number of calls may be under way at once.

    `timeout` bounds each call, in seconds. Calls that change something carry an id: made again with the same id after a
    timeout, they take effect once.
    """

    def __init__(self, settings: ClientSettings, exchange: Exchange, timeout: float) -> None:
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
        """Connect to the system of these settings, or of a data directory, or of the usual place.

        A broker that does not answer is waited for, `patience` seconds long, since it may just be starting again.

        Rejected: no system is set up there, or the token is missing or has expired. Unavailable: no broker answers.
        """
        if not isinstance(settings, ClientSettings):
            settings = read_settings(settings)
        exchange = Exchange(settings.kafka, TokenFile(Path(settings.auth.token_file)))
        await exchange.open(min(timeout, patience))
        try:
            yield cls(settings, exchange, timeout)
        finally:
            await exchange.close()

    def credential(self) -> UserCredential:
        """Return the token in use and what it says; Rejected when it has expired."""
        return TokenFile(Path(self.settings.auth.token_file)).read(clock.timestamp())

    # --- submitting ------------------------------------------------------------------------------------------------

    async def submit(
        self,
        descriptions: JobDescription | Sequence[JobDescription],
        *,
        id: str | None = None,
        strict: bool = False,
        hold: bool = False,
    ) -> Submission:
        """Submit jobs; when this returns they are taken and durable.

        Many descriptions go in several messages, each of which is taken whole or not at all. With the same `id` and the
        same descriptions nothing is submitted twice, so that a call that failed can be made again. `strict`: nothing is
        submitted if some job could run nowhere as things stand; without it the answer's `foreseen` tells. `hold`: the jobs are Held until they
        are released.

        InvalidDescription (a Rejected): every problem of every description; nothing was sent. Rejected: refused by the
        system; the message says how much of a large submission was taken. Unavailable: no answer; retry with the same id.
        """
        jobs = [descriptions] if isinstance(descriptions, JobDescription) else list(descriptions)
        submission_id = uuid.uuid4().hex if id is None else id
        whole = messages(jobs, submission_id, self._exchange.client, strict=strict, hold=hold)
        await self._keep_values(whole.values, submission_id)
        parts = whole.submits
        if strict and len(parts) > 1:
            # Each is taken or refused by itself: that none is refused is to be known before one is taken.
            for answer in await self._ask_parts(rehearsals(parts)):
                if isinstance(answer, WmsError):
                    raise answer
        answers = await self._ask_parts(parts)
        taken = [answer for answer in answers if isinstance(answer, replies.Submitted)]
        for answer in answers:
            if isinstance(answer, WmsError):
                raise _partly(answer, submission_id, taken, len(parts))
        return Submission(
            id=submission_id,
            ids=tuple(each for answer in taken for each in answer.ids),
            repeated=all(answer.repeated for answer in taken),
            warnings=tuple(dict.fromkeys(warning for answer in taken for warning in answer.warnings)),
            foreseen=tuple(each for answer in taken for each in answer.foreseen),
        )

    async def _keep_values(self, values: Sequence[ordered.AddChunks], submission_id: str) -> None:
        asked_for = [(part.command_id, part) for part in values]
        for answer in await self._exchange.ask_all(
            ordered.TOPIC, asked_for, replies.ValuesKept, self.timeout, in_order=False
        ):
            if isinstance(answer, WmsError):
                raise _partly(answer, submission_id, [], 1)

    async def _ask_parts(self, parts: Sequence[ordered.Submit]) -> Sequence[replies.Submitted | WmsError]:
        asked_for = [(part.command_id, part) for part in parts]
        return await self._exchange.ask_all(ordered.TOPIC, asked_for, replies.Submitted, self.timeout)

    async def upload(self, files: Mapping[str, Path | bytes] | Iterable[str | Path]) -> SandboxRef:
        """Put files into the sandbox store, and return the reference for a description's `input_sandbox`.

        `files` are paths, directories with all that is below them, or names in the sandbox with a path or bytes each.
        """
        packed = files if isinstance(files, Mapping) else await asyncio.to_thread(members, files)
        if not packed:
            raise Rejected("NO_FILES", "there is no file to send along", "name at least one")
        return await upload(self._store(), packed)

    async def upload_each(
        self, paths: Sequence[tuple[str, ...]], progress: Progress | None = None
    ) -> dict[tuple[str, ...], SandboxRef]:
        """Put the files of single jobs into the sandbox store: an archive for each distinct tuple of paths, uploaded once.

        Rejected: a file is missing, or they are too many or too large; nothing was uploaded.
        """
        packed = await asyncio.to_thread(archives, paths)
        store = self._store()
        gate = asyncio.Semaphore(UPLOADS_AT_ONCE)
        refs = dict[tuple[str, ...], SandboxRef]()

        async def one(key: tuple[str, ...], files: Mapping[str, Path]) -> None:
            async with gate:
                refs[key] = await upload(store, files)
            if progress is not None:
                progress(len(refs), len(packed))

        await asyncio.gather(*(one(*each) for each in packed.items()))
        return refs

    # --- looking ---------------------------------------------------------------------------------------------------

    async def jobs(
        self, selector: Selector, *, newest: bool = False, limit: int | None = None, alone: bool = False
    ) -> AsyncIterator[replies.JobLine]:
        """Go through the selected jobs by ascending id (`newest`: descending), at most `limit` of them.

        They are fetched page by page, so that any number of jobs can be gone through. `alone`: only those of no sweep.
        """
        after: int | None = None
        left = limit
        while left is None or left > 0:
            size = asked.PAGE_LIMIT if left is None else min(left, asked.PAGE_LIMIT)
            page = await self._list(selector, after, newest=newest, size=size, alone=alone)
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
        """Go through the sweeps that have a job in one of the states, likewise, each with its jobs by state."""
        after: int | None = None
        left = limit
        while left is None or left > 0:
            size = SWEEPS_PAGE if left is None else min(left, SWEEPS_PAGE)
            query = asked.ListSweeps(
                query_id=_id(),
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
        """Return how many of the selected jobs are in each state."""
        query_id = _id()
        query = asked.CountJobs(query_id=query_id, client=self._exchange.client, selector=_normal(selector))
        return (await self._ask(query, replies.JobCounts)).counts

    async def reasons(self, selector: Selector) -> dict[str, Counts]:
        """Return for which reasons the selected jobs are in their states: by state and reason, how many."""
        query = asked.CountJobs(
            query_id=_id(), client=self._exchange.client, selector=_normal(selector), by_reason=True
        )
        return (await self._ask(query, replies.JobCounts)).reasons

    async def show(self, job_id: int) -> replies.JobDetail:
        """Return one job whole: description, attempts, history with reasons."""
        query = asked.ShowJob(query_id=_id(), client=self._exchange.client, job_id=job_id)
        return await self._ask(query, replies.JobDetail)

    async def descriptions(self, selector: Selector) -> list[JobDescription]:
        """Return what the selected jobs are, each as the description of one job: what submits another like it.

        Rejected: there are none, or more than a thousand.
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
        """Return why the job is where it is, and which requirement keeps a waiting one from each computing element."""
        query = asked.WhyJob(query_id=_id(), client=self._exchange.client, job_id=job_id)
        return await self._ask(query, replies.JobWhy)

    async def peek(
        self,
        job_id: int,
        stream: Literal["stdout", "stderr"] = "stdout",
        *,
        offset: int | None = None,
        limit: int = 16_384,
    ) -> replies.JobOutput:
        """Return what the job has printed: at most `limit` bytes from `offset` on, or the last ones."""
        query = asked.PeekJob(
            query_id=_id(),
            client=self._exchange.client,
            job_id=job_id,
            stream=stream,
            offset=offset,
            limit=limit,
        )
        return await self._ask(query, replies.JobOutput)

    async def queues(self) -> tuple[replies.QueueLine, ...]:
        """Return the task queues with waiting jobs, fullest first."""
        pages = await self._pages(asked.ListQueues, replies.Queues)
        return tuple(each for page in pages for each in page.queues)

    async def sites(self) -> tuple[replies.SiteLine, ...]:
        """Return the computing elements that advertise themselves."""
        pages = await self._pages(asked.ListSites, replies.Sites)
        return tuple(each for page in pages for each in page.sites)

    async def site(self, site: str, ce: str = "") -> replies.SiteDetail:
        """Return a site, or one element of it: how it is, how it came so, its canaries, what the planner decides of it."""
        query = asked.ShowSite(query_id=_id(), client=self._exchange.client, site=site, ce=ce)
        return await self._ask(query, replies.SiteDetail)

    async def plans(self) -> tuple[replies.PlanLine, ...]:
        """Return what the planner of pilots last decided of each computing element, and why."""
        pages = await self._pages(asked.ListPlans, replies.Plans)
        return tuple(each for page in pages for each in page.plans)

    async def pilots(self, *, ended: bool = False) -> tuple[replies.PilotLine, ...]:
        """Return the pilots, the living first; with `ended` the others too."""
        pages = await self._pages(partial(asked.ListPilots, ended=ended), replies.Pilots)
        return tuple(each for page in pages for each in page.pilots)

    async def pilot(self, pilot_id: str) -> replies.PilotDetail:
        """Return a pilot whole, with what it printed if that was fetched. Raises Rejected for one that is not, or not yours to see."""
        query = asked.ShowPilot(query_id=_id(), client=self._exchange.client, pilot_id=pilot_id)
        return await self._ask(query, replies.PilotDetail)

    async def pilot_orders(self) -> tuple[replies.PilotOrderLine, ...]:
        """Return your orders for private pilots, the newest first; of administrators also others'."""
        pages = await self._pages(asked.ListPilotOrders, replies.PilotOrders)
        return tuple(each for page in pages for each in page.orders)

    async def shares(self) -> tuple[replies.ShareLine, ...]:
        """Return what the groups of your VO are entitled to, of all VOs if you administer them, and how they stand."""
        pages = await self._pages(asked.ListShares, replies.Shares)
        return tuple(each for page in pages for each in page.shares)

    async def limits(self) -> replies.LimitList:
        """Return which limits hold, and how far what they count is."""
        first, *others = await self._pages(asked.ListLimits, replies.LimitList)
        limits = (*first.limits, *(each for page in others for each in page.limits))
        counts = (*first.counts, *(each for page in others for each in page.counts))
        return msgspec.structs.replace(first, limits=limits, counts=counts, after=None)

    # --- ordering about --------------------------------------------------------------------------------------------

    async def kill(
        self, selector: Selector, reason: str = "", *, id: str | None = None
    ) -> replies.Controlled:
        """Kill the selected jobs; one that a pilot has ends as soon as the pilot has stopped it."""
        return await self.order("kill", selector, reason, id=id)

    async def hold(
        self, selector: Selector, reason: str = "", *, running: bool = False, id: str | None = None
    ) -> replies.Controlled:
        """Keep the selected waiting jobs from being given to pilots until they are released.

        With `running` those too that a pilot has: they are stopped, and begin anew once they are released.
        """
        return await self.order("stop_and_hold" if running else "hold", selector, reason, id=id)

    async def release(
        self, selector: Selector, reason: str = "", *, id: str | None = None
    ) -> replies.Controlled:
        """Let the selected held jobs wait for a pilot again."""
        return await self.order("release", selector, reason, id=id)

    async def reschedule(
        self,
        selector: Selector,
        reason: str = "",
        *,
        changes: Mapping[str, object] | None = None,
        id: str | None = None,
    ) -> replies.Controlled:
        """Run the selected jobs again from the beginning; those that run are stopped first.

        With `changes` as in `edit` they ask for something else from now on; then none of them may be with a pilot.
        """
        return await self.order("reschedule", selector, reason, changes=changes, id=id)

    async def edit(
        self,
        selector: Selector,
        changes: Mapping[str, object],
        reason: str = "",
        *,
        id: str | None = None,
    ) -> replies.Controlled:
        """Change what the selected jobs ask for, which wait or are held.

        `changes` are fields of a description with new values: `{"memory_mb": 4096, "sites": ()}`. Attributes and archives of
        `input_sandbox` are added to those that are there; an empty value clears a field. What a job does cannot be changed.

        InvalidDescription (a Rejected): every problem of the changes; nothing was sent.
        """
        return await self.order("edit", selector, reason, changes=changes, id=id)

    async def remove(
        self, selector: Selector, reason: str = "", *, id: str | None = None
    ) -> replies.Controlled:
        """Delete the selected jobs, none of which may be with a pilot."""
        return await self.order("remove", selector, reason, id=id)

    async def order(
        self,
        action: Action,
        selector: Selector,
        reason: str = "",
        *,
        changes: Mapping[str, object] | None = None,
        id: str | None = None,
    ) -> replies.Controlled:
        """Do this to the selected jobs; those for whose state it is illegal are left as they are, and named."""
        if selector == Selector():
            raise Rejected("NOTHING_SELECTED", f"no job is named to {action}", "name jobs, or say everything")
        order_id = _id() if id is None else id
        check_id(order_id)
        wanted = read_changes(changes or {}) if changes or action == "edit" else {}
        control = Control(
            command_id=CommandId(order_id),
            action=action,
            selector=_normal(selector),
            reason=reason,
            client=self._exchange.client,
            changes={name: msgspec.Raw(msgspec.json.encode(value)) for name, value in wanted.items()},
        )
        return await self._exchange.ask(ordered.TOPIC, order_id, control, replies.Controlled, self.timeout)

    # --- ruling ----------------------------------------------------------------------------------------------------

    async def set_share(
        self,
        vo: str,
        group: str,
        job_share: float | None = None,
        *,
        job_sharing: bool | None = None,
        background: bool | None = None,
        private_pilots: bool | None = None,
    ) -> str:
        """Set what a group is entitled to, until it is reset; return what holds now, in words."""
        return await self._rule(
            ordered.SetShare(
                command_id=CommandId(_id()),
                vo=vo,
                owner_group=group,
                job_share=job_share,
                job_sharing=job_sharing,
                background=background,
                private_pilots=private_pilots,
                client=self._exchange.client,
            )
        )

    async def reset_share(self, vo: str, group: str) -> str:
        """Let what the file says of a group's share hold again; return it, in words."""
        return await self._rule(
            ordered.ResetShare(
                command_id=CommandId(_id()), vo=vo, owner_group=group, client=self._exchange.client
            )
        )

    async def start_pilots(
        self,
        count: int = 1,
        *,
        site: str = "",
        ce: str = "",
        group_wide: bool = False,
        within_seconds: float = 3_600.0,
    ) -> str:
        """Order private pilots, which take your jobs alone, or your group's if it shares them; return the order in words."""
        return await self._rule(
            ordered.StartPilots(
                command_id=CommandId(_id()),
                count=count,
                site=site,
                ce=ce,
                group_wide=group_wide,
                within_seconds=within_seconds,
                client=self._exchange.client,
            )
        )

    async def stop_pilots(self, *orders: int) -> str:
        """Withdraw orders for private pilots, with none named all of yours; return which, in words."""
        client = self._exchange.client
        return await self._rule(ordered.StopPilots(command_id=CommandId(_id()), orders=orders, client=client))

    async def set_limit(self, limit: LimitRule) -> str:
        """Set a limit, until it is lifted or reset; return it in words."""
        client = self._exchange.client
        said = limited.Limit(**msgspec.structs.asdict(limit))
        return await self._rule(ordered.SetLimit(command_id=CommandId(_id()), limit=said, client=client))

    async def drop_limit(self, kind: Kind, key: LimitKey, *, reset: bool = False) -> str:
        """Lift a limit, or let the file's word of it hold again; return what was done, in words."""
        client = self._exchange.client
        return await self._rule(
            ordered.DropLimit(
                command_id=CommandId(_id()), kind=kind, key=limited.Key(*key), reset=reset, client=client
            )
        )

    async def rule_site(
        self,
        action: Literal["ban", "unban", "drain", "test", "forget"],
        site: str,
        ce: str = "",
        reason: str = "",
    ) -> replies.Ruled:
        """Order this of a site, or of one element; the answer says what holds now, of a test which canaries are out."""
        rule = ordered.RuleSite(
            command_id=CommandId(_id()),
            action=action,
            site=site,
            ce=ce,
            reason=reason,
            client=self._exchange.client,
        )
        return await self._exchange.ask(ordered.TOPIC, rule.command_id, rule, replies.Ruled, self.timeout)

    async def _rule(self, rule: ordered.Rule) -> str:
        answer = await self._exchange.ask(ordered.TOPIC, rule.command_id, rule, replies.Ruled, self.timeout)
        return answer.said

    # --- waiting and fetching --------------------------------------------------------------------------------------

    async def wait(
        self,
        selector: Selector,
        progress: Callable[[Counts], None] | None = None,
        *,
        timeout: float | None = None,
    ) -> Counts:
        """Wait until all selected jobs have ended, and return how many are in each state.

        `progress` is told the counts at each look. A broker that is away for a while is waited for too. Unavailable: some
        had not ended within `timeout` seconds (None: wait for ever).
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        pause = FIRST_LOOK_SECONDS
        while True:
            counts = await self._patient_counts(selector, deadline)
            if progress is not None:
                progress(counts)
            left = sum(count for state, count in counts.items() if state not in ENDED)
            if not left:
                return counts
            if deadline is not None and loop.time() + pause > deadline:
                raise Unavailable(f"{left:,} jobs have not ended within {timeout:g} s")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_LOOK_SECONDS)

    async def watch(
        self, jobs: Selector | Submission, *, timeout: float | None = None
    ) -> AsyncGenerator[replies.JobLine, None]:
        """Go through the jobs as they are now, then through each change of a state, until all have ended.

        Where the broker lets this client read `wms.job.events`, changes are told as they happen; elsewhere the client looks
        every 0.2 to 2 s. A job that moves twice between two looks is told once, as it is then. Unavailable: some had not
        ended within `timeout` seconds.
        """
        selector = await pinned(self, _selector(jobs))
        if selector == Selector():
            return
        async with aclosing(JobWatch(self, self.events(selector), selector, timeout).changes()) as changes:
            async for job in changes:
                yield job

    def events(self, selector: Selector | None = None) -> JobEvents:
        """Return what tells, inside its `async with`, that jobs of these ids (None or no ids: any jobs) moved."""
        return JobEvents(self._exchange, selector.ids if selector else ())

    async def as_completed(
        self, jobs: Selector | Submission, *, timeout: float | None = None
    ) -> AsyncGenerator[replies.JobLine, None]:
        """Go through the jobs as they end, each once, those that have ended already first."""
        told = set[int]()
        async with aclosing(self.watch(jobs, timeout=timeout)) as changes:
            async for job in changes:
                if job.state in ENDED and job.job_id not in told:
                    told.add(job.job_id)
                    yield job

    async def map(
        self,
        description: JobDescription,
        parameters: Mapping[str, Sequence[str]],
        *,
        id: str | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[replies.JobLine, None]:
        """Submit a job for each value of the parameters, and go through the ended jobs in the order of the values."""
        lists = {**description.parameters, **{name: tuple(values) for name, values in parameters.items()}}
        taken = await self.submit(msgspec.structs.replace(description, parameters=lists), id=id)
        ended = dict[int, replies.JobLine]()
        order = iter(taken.job_ids())
        job_id = next(order, None)
        async with aclosing(self.as_completed(taken, timeout=timeout)) as jobs:
            async for job in jobs:
                ended[job.job_id] = job
                while job_id in ended:
                    yield ended.pop(job_id)
                    job_id = next(order, None)

    async def cancel(self, jobs: Selector | Submission, reason: str = "") -> replies.Controlled:
        """Kill the jobs; another word for `kill`, which takes a submission too."""
        return await self.kill(_selector(jobs), reason)

    async def outputs(
        self, jobs: Selector | Submission, dest: Path, *, overwrite: bool = False
    ) -> dict[int, Fetched | Rejected]:
        """Put the output sandbox of each job into a directory of `dest` that is named by its id, several at a time.

        Return, by job id, what was fetched, or why nothing was.
        """
        gate = asyncio.Semaphore(FETCHES_AT_ONCE)

        async def one(job_id: int) -> Fetched | Rejected:
            async with gate:
                try:
                    return await self.output(job_id, dest / str(job_id), overwrite=overwrite)
                except Rejected as fault:
                    return fault

        found = [job.job_id async for job in self.jobs(_selector(jobs))]
        return dict(zip(found, await asyncio.gather(*map(one, found)), strict=True))

    async def output(self, job_id: int, dest: Path, *, overwrite: bool = False) -> Fetched:
        """Put the job's output sandbox into the directory `dest`, all of it or nothing.

        Rejected: the job has none, or `dest` is there and `overwrite` was not said.
        """
        digest = output_of(await self.show(job_id))
        return await fetch(self._store(), job_id, digest, dest, overwrite=overwrite)

    # --- below here: how -------------------------------------------------------------------------------------------

    async def _ask(self, query: asked.Query, answer: type[A]) -> A:
        return await self._exchange.ask(asked.TOPIC, query.query_id, query, answer, self.timeout)

    async def _pages(self, query: Callable[..., asked.PagedQuery], answer: type[P]) -> list[P]:
        """Return all pages of a list, at most PAGES_LIMIT of them."""
        pages: list[P] = []
        after: int | None = 0
        while after is not None and len(pages) < PAGES_LIMIT:
            asking = query(query_id=_id(), client=self._exchange.client, after=after)
            pages.append(await self._ask(asking, answer))
            after = pages[-1].after
        return pages

    async def _list(
        self, selector: Selector, after: int | None, *, newest: bool, size: int, alone: bool
    ) -> replies.JobPage:
        query = asked.ListJobs(
            query_id=_id(),
            client=self._exchange.client,
            selector=_normal(selector),
            after=after,
            newest=newest,
            limit=size,
            alone=alone,
        )
        return await self._ask(query, replies.JobPage)

    async def _patient_counts(self, selector: Selector, deadline: float | None) -> Counts:
        while True:
            try:
                return await self.counts(selector)
            except Unavailable:
                if deadline is not None and asyncio.get_running_loop().time() > deadline:
                    raise

    def _store(self) -> SandboxStore:
        if self.settings.sandboxes is None:
            raise Rejected(
                "NO_STORE", "this system's settings name no sandbox store", "set url in [sandboxes]"
            )
        return open_store(self.settings.sandboxes.address)


def _id() -> str:
    return uuid.uuid4().hex


def _selector(jobs: Selector | Submission) -> Selector:
    return jobs.selector() if isinstance(jobs, Submission) else jobs


def _normal(selector: Selector) -> Selector:
    return msgspec.structs.replace(selector, ids=joined(selector.ids))


def _partly(
    fault: WmsError, submission_id: str, taken: Sequence[replies.Submitted], parts: int
) -> Rejected | Unavailable:
    """Return the fault with what became of the rest of the submission."""
    ids = joined(each for answer in taken for each in answer.ids)
    count = sum(high - low + 1 for low, high in ids)
    so_far = f"; {len(taken)} of {parts} parts were taken, {count:,} jobs" if parts > 1 else ""
    if isinstance(fault, Rejected):
        remedy = fault.remedy if parts == 1 else f"{fault.remedy or 'mend it'}; the rest stays submitted"
        return Rejected(fault.code, fault.message + so_far, remedy, fault.details)
    return Unavailable(
        f"{fault}{so_far}; the same submission with the id {submission_id} submits nothing twice"
    )
