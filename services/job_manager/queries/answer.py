"""Handles `wms.job.queries`: finds the answer to each query of a user."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import asyncpg
import msgspec

from services.job_manager import pilot_orders, revocation_orders, site_orders
from services.job_manager.queries import (
    access,
    counts,
    dead_letters,
    leases,
    overview,
    payloads,
    progress,
    rankings,
    reservations,
    shares,
    usage,
    why,
)
from services.job_manager.queries.kept_counts import KeptCounts
from services.job_manager.queries.paging import fitting, page, read_page
from services.job_manager.queries.peek import peeking, stored_output
from services.job_manager.refusals import refuse
from wms.auth.orders import OrderKeys
from wms.auth.policy import Action, allowed, no_such_job, refusal, scope
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.db import (
    block,
    job,
    job_result,
    pilot,
    queue_stats,
    read_model,
    selection,
    share,
    sweep,
    transfer,
    wait_reason,
)
from wms.db.database import Transaction
from wms.db.job_search import PageRequest
from wms.errors import Rejected
from wms.ids import JobId, PilotId
from wms.job.job import Job
from wms.job.state import State
from wms.lease import Lease
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.reports import StagingReport, UsagePoints
from wms.messages.site_inbox import Peek, inbox
from wms.printed_text import printed

Answer: TypeAlias = Callable[[Transaction, Principal, Any], Awaitable[msgspec.Struct | None]]

QUEUES_LIMIT = 10_000
"""The largest number of task queues in all pages of a list together: those with the most jobs."""


class Queries:
    """Answers queries of users. `segments` are the CPU segments by which jobs are grouped into task queues."""

    def __init__(
        self, segments: tuple[int, ...], half_life_hours: float = 0.0, orders: OrderKeys | None = None
    ) -> None:
        """`segments` are upper bounds in seconds. `half_life_hours` is the half-life of recorded usage; 0: none is recorded.

        `orders` are the keys that prove who asked for a running job's output. Without them pilots' answers with outputs are dropped.
        """
        self._segments = segments
        self._answers: dict[type[Any], Answer] = {
            asked.ListShares: partial(shares.list_shares, half_life_hours=half_life_hours),
            asked.CountJobs: counts.Counting().count_jobs,
            asked.ShowProgress: partial(progress.show_progress, kept=KeptCounts(progress.KEPT_SCOPES)),
            asked.ShowOverview: partial(overview.show_overview, kept=KeptCounts(1)),
            asked.PeekJob: partial(_peek_job, orders=orders),
        }

    async def handle(self, tx: Transaction, batch: list[Delivery[asked.Asked]]) -> None:
        """Answer each query of the batch in its sender's inbox. A query that is refused gets the reason."""
        for delivery in batch:
            principal, query = delivery.principal, delivery.message
            if principal is None:
                continue
            try:
                reply = await self._answer(tx, await _acting(tx, principal, query), query)
                if reply is not None:
                    # A reply that is too large fails this query alone.
                    tx.send(*replies.address(principal.owner, query.client), reply)
            except Rejected as fault:
                refuse(tx, principal.owner, query.query_id, query.client, fault)

    async def _answer(self, tx: Transaction, principal: Principal, query: Any) -> msgspec.Struct | None:
        if isinstance(query, asked.WhyJob):
            found = await _own(tx, principal, query.job_id, "see_detail")
            return await why.explain_job(tx, found, query, self._segments)
        if isinstance(query, asked.ShowRanking):
            found = await _own(tx, principal, query.job_id, "see_detail")
            return await rankings.show_ranking(tx, found, query)
        answer = self._answers.get(type(query)) or _ANSWERS[type(query)]
        return await answer(tx, principal, query)


async def _acting(tx: Transaction, principal: Principal, query: asked.Asked) -> Principal:
    if principal.kind == "payload":
        return await payloads.acting(tx, principal, query)
    return await share.acting(tx, principal)


async def on_refused(tx: Transaction, query: asked.Asked, fault: Rejected, claimed: str) -> None:
    """Answer a query whose token was refused. `claimed` is the owner in that unverified token; empty: no answer is sent."""
    if claimed:
        refuse(tx, claimed, query.query_id, query.client, fault)


async def _list_jobs(tx: Transaction, principal: Principal, query: asked.ListJobs) -> replies.JobPage:
    page = PageRequest(query.limit, query.after, newest=query.newest, alone=query.alone)
    selector = await selection.of_submission(tx, principal.owner, query.selector)
    found = await selection.search(tx, scope(principal, "see"), selector, page)
    reasons = await wait_reason.of_jobs(tx, found.ids)
    rows = await selection.lines(tx, found.ids)
    results = await _results(tx, principal, rows) if query.results else {}
    lines = [_line(row, reasons, results.get(row["job_id"])) for row in rows]
    jobs = fitting(lines)
    after = jobs[-1].job_id if len(jobs) < len(lines) else found.until
    return replies.JobPage(query_id=query.query_id, client=query.client, jobs=tuple(jobs), after=after)


async def _results(
    tx: Transaction, principal: Principal, rows: Sequence[Mapping[str, Any]]
) -> dict[JobId, replies.JobResult]:
    """Return how jobs went, of those whose details the principal may see."""
    seen = scope(principal, "see_detail")
    mine = [row["job_id"] for row in rows if seen.covers(row["owner"], row["owner_group"], row["vo"])]
    return await job_result.of_jobs(tx, mine)


def _line(
    row: Mapping[str, Any], reasons: Mapping[JobId, asyncpg.Record], result: replies.JobResult | None = None
) -> replies.JobLine:
    """Return a job as a line of a list. The reason of a waiting job is the present wait reason in `reasons`."""
    waits = reasons.get(row["job_id"])
    return replies.JobLine(**{**row, "reason": waits["code"] if waits else row["reason"]}, result=result)


async def _list_sweeps(tx: Transaction, principal: Principal, query: asked.ListSweeps) -> replies.SweepPage:
    rows = await sweep.select(
        tx,
        scope(principal, "see"),
        owner=query.owner,
        states=query.states,
        after=query.after,
        newest=query.newest,
        limit=query.limit,
        job_group=query.job_group,
        changed_since=query.changed_since,
    )
    counts = await sweep.count(tx, [row["first"] for row in rows])
    lines = fitting(replies.SweepLine(**row, counts=counts[row["first"]]) for row in rows)
    after = lines[-1].first if len(lines) < len(rows) or len(rows) == query.limit else None
    return replies.SweepPage(query_id=query.query_id, client=query.client, sweeps=tuple(lines), after=after)


async def _own(tx: Transaction, principal: Principal, job_id: int, action: Action) -> Job:
    wanted = JobId(job_id)
    found = (await job.read(tx, [wanted])).get(wanted) or await _in_block(tx, wanted)
    if found is None:
        raise no_such_job(job_id)
    of = (found.owner, found.owner_group, found.vo)
    if not allowed(principal, action, *of):
        raise refusal(principal, action, *of, job_id=job_id)
    return found


async def _in_block(tx: Transaction, job_id: JobId) -> Job | None:
    return next((each.job(job_id) for each in await block.of_jobs(tx, [job_id])), None)


async def _show_job(tx: Transaction, principal: Principal, query: asked.ShowJob) -> replies.JobDetail:
    found = await _own(tx, principal, query.job_id, "see_detail")
    (line,) = await selection.lines(tx, [found.job_id])
    reasons = await wait_reason.of_jobs(tx, [found.job_id])
    index, parameters, body = await read_model.description(tx, found.job_id)
    return replies.JobDetail(
        query_id=query.query_id,
        client=query.client,
        job=_line(line, reasons),
        array_index=index,
        parameters=parameters,
        description=msgspec.json.decode(body),
        attempts=tuple(_attempt(row) for row in await read_model.attempts(tx, found.job_id)),
        history=tuple(replies.HistoryLine(**row) for row in await read_model.history(tx, found.job_id)),
        reason_text=reasons[found.job_id]["text"] if reasons else "",
        holders=tuple(replies.HolderLine(**row) for row in await pilot.of_job(tx, found.job_id)),
        lease=_lease(found.lease, await transfer.progress(tx, found.job_id)),
    )


def _attempt(row: asyncpg.Record) -> replies.Attempt:
    points = msgspec.json.decode(row["usage_points"], type=UsagePoints)
    return replies.Attempt(**{**row, "usage_points": points})


def _lease(lease: Lease | None, staging: StagingReport | None) -> replies.LeaseLine | None:
    if lease is None:
        return None
    return replies.LeaseLine(
        epoch=lease.epoch,
        pilot_id=lease.pilot_id,
        phase=lease.phase,
        expires_at=lease.expires_at,
        staging=staging if lease.epoch == (staging.epoch if staging else None) else None,
    )


async def _peek_job(
    tx: Transaction, principal: Principal, query: asked.PeekJob, orders: OrderKeys | None
) -> replies.JobOutput | None:
    found = await _own(tx, principal, query.job_id, "see_detail")
    if found.state is State.RUNNING and found.lease is not None and found.site is not None:
        peek = Peek(
            pilot_id=found.lease.pilot_id,
            job_id=found.job_id,
            epoch=found.epoch,
            stream=query.stream,
            offset=query.offset,
            limit=query.limit,
            query_id=query.query_id,
            client=query.client,
            asker=principal.owner,
            raw=query.raw,
        )
        ticket = orders.ticket(*peeking(peek)) if orders else ""
        tx.send(inbox(found.site), found.lease.pilot_id, msgspec.structs.replace(peek, ticket=ticket))
        return None
    tails = await read_model.tails(tx, found.job_id)
    return stored_output(query, *(tails.stderr if query.stream == "stderr" else tails.stdout))


async def _list_queues(tx: Transaction, principal: Principal, query: asked.ListQueues) -> replies.Queues:
    most = min(query.after + query.limit + 1, QUEUES_LIMIT)
    rows = await read_model.queues(
        tx, scope(principal, "see"), most, watched=await queue_stats.is_watched(tx)
    )
    queues, after = page([_queue(row) for row in rows[query.after :]], 0, query.limit)
    following = None if after is None else query.after + after
    return replies.Queues(query_id=query.query_id, client=query.client, queues=queues, after=following)


def _queue(row: asyncpg.Record) -> replies.QueueLine:
    return replies.QueueLine(**{**row, "requirements": msgspec.json.decode(row["requirements"])})


async def _list_pilots(tx: Transaction, principal: Principal, query: asked.ListPilots) -> replies.Pilots:
    vo = None if allowed(principal, "administer", "", "", "") else principal.vo

    async def read(after: int, limit: int) -> list[replies.PilotLine]:
        return [_pilot(row) for row in await pilot.listed(tx, after, limit, vo=vo, ended=query.ended)]

    lines, after = await read_page(read, query.after, query.limit)
    return replies.Pilots(query_id=query.query_id, client=query.client, pilots=lines, after=after)


async def _show_pilot(tx: Transaction, principal: Principal, query: asked.ShowPilot) -> replies.PilotDetail:
    row = await pilot.one(tx, PilotId(query.pilot_id))
    if row is None or not _may_see_pilot(principal, row):
        raise Rejected(
            "NO_SUCH_PILOT", f"there is no pilot {query.pilot_id}", "`wms pilots --ended` lists them"
        )
    return replies.PilotDetail(
        query_id=query.query_id,
        client=query.client,
        pilot=_pilot(row),
        dispatcher=row["dispatcher"],
        reference=row["reference"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        word=row["word"],
        word_at=row["word_at"],
        cause=row["cause"],
        output=row["output"] and printed(row["output"]),
        refused_orders=row["refused_orders"],
        isolation=row["isolation"],
    )


def _may_see_pilot(principal: Principal, row: asyncpg.Record) -> bool:
    return row["vo"] == principal.vo or allowed(principal, "administer", "", "", row["vo"])


def _pilot(row: asyncpg.Record) -> replies.PilotLine:
    return replies.PilotLine(**{name: row[name] for name in replies.PilotLine.__struct_fields__})


_ANSWERS: dict[type[Any], Any] = {
    asked.ListPilotOrders: pilot_orders.list_orders,
    asked.ListJobs: _list_jobs,
    asked.ListSweeps: _list_sweeps,
    asked.ShowJob: _show_job,
    asked.ListQueues: _list_queues,
    asked.ListSites: site_orders.list_sites,
    asked.ShowSite: site_orders.show_site,
    asked.ListPlans: site_orders.list_plans,
    asked.ListPilots: _list_pilots,
    asked.ShowPilot: _show_pilot,
    asked.ListLimits: shares.list_limits,
    asked.ListPredictions: rankings.list_predictions,
    asked.ListReservations: reservations.list_reservations,
    asked.WhoAmI: access.who_am_i,
    asked.ListAuditTrail: access.list_audit_trail,
    asked.ListRevocations: revocation_orders.list_revocations,
    asked.ShowUsage: usage.show_usage,
    asked.ShowLease: leases.show_lease,
    asked.ListDeadLetters: dead_letters.list_letters,
    asked.ShowDeadLetter: dead_letters.show_letter,
}
