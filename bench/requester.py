"""A job agent that runs no process: for benchmarks only. It takes jobs by the real protocol and says at once that they are done."""

import asyncio
import contextlib
import time
import uuid

import msgspec

from wms.auth.keys import SigningKey
from wms.auth.principal import Right
from wms.auth.token import Claims, mint
from wms.bus.inbox import Inbox
from wms.bus.kafka import Kafka
from wms.bus.topics import site_inbox_of
from wms.ids import PilotId, ReportId, RequestId
from wms.job.reasons import Code
from wms.messages import reports, requests
from wms.messages.reports import Report, Result
from wms.messages.requests import MatchRequest
from wms.messages.site_inbox import Answer, Held, NoMatch, Offer, ToAgent
from wms.messages.wire import Codec, encode
from wms.runtime import clock
from wms.site import Resource

ANSWER_WITHIN = 60.0


class Mailbox:
    """The one reader of a site's inbox for all requesters of the benchmark."""

    def __init__(self, kafka: Kafka, site: str) -> None:
        self._inbox: Inbox[ToAgent] = Inbox(kafka, site_inbox_of(site), Codec(ToAgent))
        self._waiting: dict[str, asyncio.Future[ToAgent]] = {}
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._inbox.start()
        self._task = asyncio.create_task(self._read())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._inbox.close()

    def expect(self, message_id: str) -> asyncio.Future[ToAgent]:
        future: asyncio.Future[ToAgent] = asyncio.get_running_loop().create_future()
        self._waiting[message_id] = future
        return future

    async def _read(self) -> None:
        while True:
            for message in await self._inbox.poll(1.0):
                match message:
                    case Offer() | NoMatch():
                        future = self._waiting.pop(message.request_id, None)
                    case Answer():
                        future = self._waiting.pop(message.report_id, None)
                    case _:
                        future = None
                if future is not None and not future.done():
                    future.set_result(message)


class Requester:
    """One such agent: a pilot of its own, with a token, for `slots` jobs at a time."""

    def __init__(
        self, kafka: Kafka, mailbox: Mailbox, key: SigningKey, *, site: str, vo: str, slots: int
    ) -> None:
        self._kafka = kafka
        self._mailbox = mailbox
        self._pilot_id = PilotId(f"bench-{uuid.uuid4().hex[:12]}")
        self._slots = slots
        claims = Claims(
            kind="pilot", owner="bench", group="pilot", vo=vo, rights=frozenset({Right.GENERIC_PILOT}),
            pilot_id=self._pilot_id, site=site, ce="bench",
        )  # fmt: skip
        self._token = mint(key, claims, 86_400.0, clock.timestamp())
        self._resource = Resource(
            setup="default", vo=vo, cpu_time=864_000, site=site, grid_ce="bench", memory_mb=64_000,
            processors=slots,
        )  # fmt: skip
        self.jobs = 0
        self.seconds: list[float] = []
        """From each request to its offer."""

    async def work(self, until: float) -> None:
        """Ask, accept and report done, again and again until that moment of the monotonic clock, or nothing is left."""
        while time.monotonic() < until and (offer := await self._ask()) is not None:
            held: list[Held] = [(job.job_id, job.epoch) for job in offer.jobs]
            answer = await self._report(accept=tuple(held))
            done = tuple(
                Result(job_id=job_id, epoch=epoch, outcome="done", code=Code.DONE, exit_code=0)
                for job_id, epoch in answer.granted
            )
            answer = await self._report(start=answer.granted, finish=done)
            self.jobs += len(answer.recorded)

    async def _ask(self) -> Offer | None:
        request = MatchRequest(
            request_id=RequestId(uuid.uuid4().hex),
            pilot_id=self._pilot_id,
            resource=self._resource,
            slots=self._slots,
        )
        began = time.perf_counter()
        answer = await self._told(requests.TOPIC, request.request_id, request)
        if not isinstance(answer, Offer):
            return None
        self.seconds.append(time.perf_counter() - began)
        return answer

    async def _report(
        self, accept: tuple[Held, ...] = (), start: tuple[Held, ...] = (), finish: tuple[Result, ...] = ()
    ) -> Answer:
        report = Report(
            report_id=ReportId(uuid.uuid4().hex),
            pilot_id=self._pilot_id,
            slots=self._slots,
            accept=accept,
            start=start,
            finish=finish,
        )
        answer = await self._told(reports.TOPIC, report.report_id, report)
        assert isinstance(answer, Answer)
        return answer

    async def _told(self, topic: str, message_id: str, message: msgspec.Struct) -> ToAgent:
        future = self._mailbox.expect(message_id)
        await self._kafka.send(topic, self._pilot_id, encode(message), self._token)
        return await asyncio.wait_for(future, ANSWER_WITHIN)
