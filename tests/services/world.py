"""The services' handlers over a real Postgres, called one by one: a test says who sends what, and in which order.

Messages go in as handlers get them, with the principal a token would have given; what a transaction sent is read from
what it posted to the outbox. No broker is needed and nothing waits: time is moved in the database.
"""

import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg
import msgspec
import numpy as np

from services.job_manager.commands import Commands
from services.job_manager.dependencies import Dependencies
from services.job_manager.maintenance.lease_sweeper import LeaseSweeper
from services.job_manager.maintenance.wait_reasons import WaitReasons
from services.job_manager.queries.answer import Queries
from services.job_manager.reports import Reports
from services.job_manager.submission.submit_check import SubmitCheck
from services.job_manager.submission.waiting_limits import WaitingQuota
from services.matcher.avoided_elements import AvoidedElements
from services.matcher.index_sync import IndexSync
from services.matcher.limit_gate import LimitGate
from services.matcher.matching import Matching
from services.matcher.policy_refresh import PolicyRefresh
from services.matcher.queue_stats import QueueStatsWriter
from wms.auth.orders import OrderKeys
from wms.auth.principal import Principal
from wms.auth.service_signatures import ServiceSignatures
from wms.bus.consumer import Delivery
from wms.bus.kafka import Kafka, KafkaSettings
from wms.db.database import Database, Parcel
from wms.ids import AttemptId, CommandId, JobId, PilotId, ReportId, RequestId
from wms.job.reasons import Code
from wms.lease import LeaseDurations
from wms.matching.grouping import DEFAULT_SEGMENTS
from wms.messages import events, replies, site_inbox
from wms.messages.commands import Command, Control, Selector, Submit
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import Report, Result, Usage
from wms.queue_index.index import QueueIndex
from wms.runtime import clock
from wms.site import Resource, Told

ORDERS = OrderKeys([b"w" * 32])
NOTICES = ServiceSignatures(ORDERS, clock.timestamp)
R = TypeVar("R")

_FACT: msgspec.json.Decoder[Any] = msgspec.json.Decoder(events.Fact)
_REPLY = msgspec.json.Decoder(replies.Reply)
_TO_AGENT: msgspec.json.Decoder[Any] = msgspec.json.Decoder(site_inbox.ToAgent)


def user(owner: str = "ann", *rights: str, group: str = "physics", vo: str = "lhcb") -> Principal:
    return Principal(
        kind="user",
        owner=owner,
        group=group,
        vo=vo,
        rights=frozenset(rights),
        token_id="t",
        expires_at=4e9,
    )


def pilot(
    pilot_id: str = "p-1", *, site: str = "A", vo: str = "lhcb", job_id: JobId | None = None
) -> Principal:
    return Principal(
        kind="pilot",
        owner="pilot_submitter",
        group="pilot",
        vo=vo,
        rights=frozenset({"generic_pilot"}),
        pilot_id=pilot_id,
        site=site,
        ce="ce",
        job_id=job_id,
        token_id="t" if job_id is None else f"t-{job_id}",
        expires_at=4e9,
    )


class World:
    """One database with the handlers of job manager and matcher."""

    def __init__(self, db: Database, url: str) -> None:
        self.db = db
        self.url = url
        self.terms = LeaseDurations()
        # Its clock moves on whenever it is read: ads are looked at for each submission.
        clock = itertools.count().__next__
        self.admission = WaitingQuota(db)
        self._commands = Commands(DEFAULT_SEGMENTS, SubmitCheck(DEFAULT_SEGMENTS, clock), self.admission)
        self.canaries = self._commands.canaries
        self._reports = Reports(self.terms, orders=ORDERS)
        self.clock_set = 0.0
        """By how many seconds somebody set the database's clock on, as a sweep sees it."""
        self._leases = LeaseSweeper(db, self.terms, lambda: time.monotonic() - self.clock_set)
        self._queries = Queries(DEFAULT_SEGMENTS, orders=ORDERS)
        self._reasons = WaitReasons(db)
        self.dependencies = Dependencies(db, lambda: 0.0)
        self.index = QueueIndex()
        self._feed = IndexSync(db, Kafka(KafkaSettings(), "test"), self.index, NOTICES)
        self.now = 0.0
        """What the matcher's monotonic clock says."""
        self.gate = LimitGate(self.index, lambda: self.now)
        self.rules = PolicyRefresh(db, self.index, self.gate, lambda: self.now)
        self.standing = AvoidedElements(db, self.index)
        self._matching = Matching(
            self.index, self.gate, self.terms, 1.0, np.random.default_rng(1), is_shared=self.rules.is_shared
        )
        self._watch = QueueStatsWriter(db, self.index, self._matching.by_queue, "dirac", "test-matcher")
        self._posted: list[Parcel] = []
        self._ids = (f"id-{n}" for n in itertools.count(1))
        db.on_posted = self._posted.extend

    # --- users ------------------------------------------------------------------------------------

    async def submit(self, *jobs: dict[str, Any], who: Principal | None = None, command_id: str = "") -> Any:
        """Submit descriptions and return the reply."""
        raw = tuple(
            msgspec.Raw(msgspec.json.encode({"executable": "/bin/true", **each})) for each in jobs or ({},)
        )
        submit = Submit(command_id=CommandId(command_id or next(self._ids)), jobs=raw)
        return (await self.command(who or user(), submit))[0]

    async def submitted(self, count: int = 1, **description: Any) -> list[JobId]:
        """Submit so many jobs, each by itself, and return their ids."""
        return await self._submitted(*[description] * count)

    async def swept(self, count: int, **description: Any) -> list[JobId]:
        """Submit a sweep of so many jobs and return their ids."""
        return await self._submitted({**description, "array": count})

    async def _submitted(self, *descriptions: dict[str, Any]) -> list[JobId]:
        reply = await self.submit(*descriptions)
        assert isinstance(reply, replies.Submitted), reply
        return [JobId(n) for low, high in reply.ids for n in range(low, high + 1)]

    async def order(
        self,
        action: Any,
        *job_ids: int,
        who: Principal | None = None,
        command_id: str = "",
        reason: str = "",
        **changes: Any,
    ) -> replies.Controlled:
        selector = Selector(ids=tuple((n, n) for n in job_ids))
        control = Control(
            command_id=CommandId(command_id or next(self._ids)),
            action=action,
            selector=selector,
            reason=reason,
            changes={name: msgspec.Raw(msgspec.json.encode(each)) for name, each in changes.items()},
        )
        (reply,) = await self.command(who or user(), control)
        assert isinstance(reply, replies.Controlled), reply
        return reply

    async def command(self, who: Principal, *messages: Command) -> list[replies.Reply]:
        """Hand commands to the job manager in one batch and return the replies."""
        async with self.db.transaction() as tx:
            await self._commands.handle(tx, [Delivery(who, message) for message in messages])
        return self.replies(who.owner)

    async def ask(self, who: Principal, query: Any) -> Any:
        async with self.db.transaction() as tx:
            await self._queries.handle(tx, [Delivery(who, query)])
        (reply,) = self.replies(who.owner)
        return reply

    def replies(self, owner: str) -> list[replies.Reply]:
        """Return, once, what the owner's tools were told."""
        return [_REPLY.decode(payload) for payload in self.take(replies.inbox(owner))]

    def told(self, site: str = "A") -> list[Any]:
        """Return, once, what the agents of a site were told."""
        return [_TO_AGENT.decode(payload) for payload in self.take(site_inbox.inbox(site))]

    def take(self, topic: str) -> list[bytes]:
        """Return, once, what was sent to a topic."""
        mine = [each for each in self._posted if each.topic == topic]
        self._posted[:] = [each for each in self._posted if each.topic != topic]
        return [payload for each in mine for payload in each.payloads]

    async def reconcile(self) -> None:
        """Have the index follow the database."""
        await self._feed.reconcile()

    # --- pilots -----------------------------------------------------------------------------------

    async def add_pilot(self, who: Principal | None = None, slots: int = 8) -> Principal:
        """Write a pilot down as one that was sent."""
        who = who or pilot()
        await self.sql(
            "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots) values ($1, $2, $3, $4, 'local', $5)"
            " on conflict do nothing",
            who.pilot_id,
            who.site,
            who.ce,
            who.vo,
            slots,
        )
        return who

    async def watch(self) -> None:
        """Have the matcher, after a look at the truth, say how its queues do."""
        await self._feed.reconcile()
        await self._watch.write()

    async def look(self) -> list[Any]:
        """Have the job manager look why queues wait, and return what it told everybody."""
        await self.watch()
        self._reasons._not_before = 0.0
        await self._reasons.look()
        facts = [_FACT.decode(payload) for payload in self.take(events.TOPIC)]
        return [each for each in facts if isinstance(each, events.WaitReason)]

    async def match(
        self,
        who: Principal | None = None,
        slots: int = 1,
        request_id: str = "",
        node: Told = (),
        *,
        reconciled: bool = True,
        **offered: Any,
    ) -> list[AttemptId]:
        """Ask for work, by what is known of the node, and return what was offered; `offered` replaces the usual resource.

        With `reconciled` the index learns first from the database; else it knows what the last call left.
        """
        who = await self.add_pilot(who)
        if reconciled:
            await self.reconcile()
        request = MatchRequest(
            request_id=RequestId(request_id or next(self._ids)),
            pilot_id=PilotId(who.pilot_id or ""),
            resource=msgspec.structs.replace(
                Resource(
                    setup="default", vo=who.vo, cpu_time=10**6, processors=slots, memory_mb=100_000, node=node
                ),
                **offered,
            ),
            slots=slots,
        )
        await self.db.attempt(lambda tx: self._matching.handle(tx, [Delivery(who, request)]))
        offers = [each for each in self.told(who.site or "") if isinstance(each, site_inbox.Offer)]
        return [job.attempt_id for offer in offers for job in offer.jobs]

    async def report(self, who: Principal | None = None, *more: Report, **parts: Any) -> Any:
        """Send one report (and more in the same batch) and return its answer, or the answers of all."""
        who = who or pilot()
        reports = [self.made(who, **parts), *more]
        async with self.db.transaction() as tx:
            await self._reports.handle(tx, [Delivery(who, each) for each in reports])
        answers = [each for each in self.told(who.site or "") if isinstance(each, site_inbox.Answer)]
        return answers if more else answers[0] if answers else None

    async def wait_hours(self, hours: int = 1) -> None:
        """Let the present attempts have begun so many hours earlier."""
        await self.sql("update lease set granted_at = granted_at - make_interval(hours => $1)", hours)

    def made(self, who: Principal | None = None, **parts: Any) -> Report:
        parts.setdefault("report_id", ReportId(next(self._ids)))
        parts.setdefault("slots", 8)
        return Report(pilot_id=PilotId((who or pilot()).pilot_id or ""), **parts)

    async def running(
        self, count: int = 1, who: Principal | None = None, **description: Any
    ) -> list[AttemptId]:
        """Submit jobs and have a pilot start them."""
        await self.submitted(count, **description)
        held = await self.match(who, count)
        assert len(held) == count
        answer = await self.report(who, accept=tuple(held), busy=count)
        assert set(answer.granted) == set(held)
        await self.report(who, start=tuple(held), busy=count)
        return held

    async def settle(self) -> None:
        """Have the job manager look at all dependencies."""
        while await self.dependencies.look():
            pass

    # --- time and truth ---------------------------------------------------------------------------

    async def expire(self, *job_ids: int) -> None:
        """Let the leases of these jobs run out, and have what ran out taken back."""
        await self.sql(
            "update lease set expires_at = now() - interval '1 ms' where job_id = any ($1)", list(job_ids)
        )
        await self._leases.sweep()

    async def sql(self, statement: str, *args: Any) -> list[asyncpg.Record]:
        async with self.db.transaction() as tx:
            return await tx.fetch(statement, *args)

    async def job(self, job_id: int) -> asyncpg.Record:
        (row,) = await self.sql("select * from job where job_id = $1", job_id)
        return row

    async def state(self, job_id: int) -> str:
        return str((await self.job(job_id))["state"])

    async def attempts(self, job_id: int) -> list[asyncpg.Record]:
        return await self.sql("select * from attempt where job_id = $1 order by epoch", job_id)

    async def history(self, job_id: int) -> list[str]:
        rows = await self.sql("select state from job_event where job_id = $1 order by seq", job_id)
        return [row["state"] for row in rows]

    async def reasons(self, job_id: int) -> list[str]:
        rows = await self.sql("select reason from job_event where job_id = $1 order by seq", job_id)
        return [row["reason"] for row in rows]


def result(held: AttemptId, outcome: Any = "done", code: Code = Code.DONE, **more: Any) -> Result:
    more.setdefault("usage", Usage(cpu_user_seconds=1.0, cpu_system_seconds=0.5, wall_seconds=2.0))
    return Result(job_id=held[0], epoch=held[1], outcome=outcome, code=code, **more)


@asynccontextmanager
async def world(url: str) -> AsyncIterator[World]:
    db = await Database.connect(url, size=4, ready=1, application="test")
    try:
        yield World(db, url)
    finally:
        await db.close()


def ids(held: Sequence[AttemptId]) -> list[JobId]:
    return [job_id for job_id, _ in held]
