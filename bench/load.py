"""Job agents that run nothing, many in one lean process: they ask, and where wanted accept and report the jobs done.

One producer, one reader, no task and no timer per request. Every answer is awaited: one that never comes is a failure.
"""

import asyncio
import contextlib
import itertools
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Self

import msgspec

from bench.measuring import Figures, percentile
from bench.validity import InvalidError
from wms.auth.keys import SigningKey
from wms.auth.principal import Right
from wms.auth.token import Claims, mint
from wms.bus.kafka import HEADER, Kafka
from wms.bus.reader import Reader
from wms.bus.topics import site_inbox_of
from wms.ids import AttemptId, Epoch, JobId, PilotId, ReportId, RequestId
from wms.job.reasons import Code
from wms.messages import match_requests, reports
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import Report, Result
from wms.messages.wire import encode
from wms.runtime import clock
from wms.site import Resource

PILOTS = 32
"""Each asks again and again without waiting, so that few stand for many: a request is one by its id."""
PLACE_HOLDER = "@" * 16
PATIENCE_SECONDS = 30.0
"""After the load has ended, for answers that are still to come."""
TICK_SECONDS = 0.002
CHUNK = 64
"""Requests in one send, at most."""


class _Job(msgspec.Struct):
    job_id: JobId
    epoch: Epoch


class Told(msgspec.Struct):
    """What is looked at of all that an inbox brings."""

    type: str
    request_id: str = ""
    report_id: str = ""
    jobs: tuple[_Job, ...] = ()
    granted: tuple[AttemptId, ...] = ()
    recorded: tuple[AttemptId, ...] = ()


class _Envelope(msgspec.Struct, frozen=True):
    order: Told


def decoded(payload: bytes) -> Told:
    """Return what was told; whether it is signed rightly is not asked here."""
    return _ENVELOPES.decode(payload).order


_ENVELOPES = msgspec.json.Decoder(_Envelope)


class Agent:
    """One pilot: its token, and its request with a place for the id."""

    def __init__(self, key: SigningKey, site: str, vo: str, slots: int) -> None:
        self.pilot_id = PilotId(f"bench-{uuid.uuid4().hex[:12]}")
        self.slots = slots
        claims = Claims(
            kind="pilot", owner="bench", group="pilot", vo=vo, rights=frozenset({Right.GENERIC_PILOT}),
            pilot_id=self.pilot_id, site=site, ce="bench",
        )  # fmt: skip
        self.token = mint(key, claims, 86_400.0, clock.timestamp())
        self.headers = [(HEADER, f"Bearer {self.token}".encode())]
        resource = Resource(
            setup="default", vo=vo, cpu_time=864_000, site=site, grid_ce="bench", memory_mb=64_000,
            processors=slots,
        )  # fmt: skip
        request = MatchRequest(
            request_id=RequestId(PLACE_HOLDER), pilot_id=self.pilot_id, resource=resource, slots=slots
        )
        self._before, self._after = encode(request).split(PLACE_HOLDER.encode())

    def request(self, request_id: str) -> bytes:
        return self._before + request_id.encode() + self._after


class Load:
    """Requests of such agents, of so many slots each; with `lives`, each job is taken and done as well."""

    def __init__(
        self, kafka: Kafka, key: SigningKey, *, site: str, vo: str, slots: int, lives: bool = False
    ) -> None:
        self._kafka = kafka
        self._site = site
        self._lives = lives
        self._agents = [Agent(key, site, vo, slots) for _ in range(PILOTS)]
        self._turns = itertools.cycle(range(PILOTS))
        self._prefix = uuid.uuid4().hex[:6]
        self._numbers = itertools.count()
        self._asked: dict[str, tuple[int, float]] = {}
        """Of each request that is not over: its agent, and when it was due."""
        self._given: dict[AttemptId, str] = {}
        self._answered = asyncio.Event()
        self._reader: Reader | None = None
        self._listening: asyncio.Task[None] | None = None
        self._seconds: list[float] = []
        self.jobs = 0
        """All that were offered."""
        self._done = 0
        self._nothing = 0

    @property
    def pilot_ids(self) -> list[PilotId]:
        """The pilots that ask: they must have been written down, or they are given nothing."""
        return [agent.pilot_id for agent in self._agents]

    async def __aenter__(self) -> Self:
        inbox = site_inbox_of(self._site)
        await self._kafka.ensure([inbox])
        self._reader = await self._kafka.reader(inbox.name)
        await self._reader.assign_end()
        self._listening = asyncio.create_task(self._listen(self._reader))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listening is not None
        assert self._reader is not None
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening
        await self._reader.close()

    # --- asking -----------------------------------------------------------------------------------

    async def at_rate(self, rate: int, seconds: float) -> Figures:
        """Ask so often, whatever the answers; a request's time counts from when it was due, not from when it was sent."""
        began, sent = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds:
            # The first is due at once, the next after 1/rate: as many as are due by now, not one less.
            due = int(passed * rate) + 1
            for first in range(sent, due, CHUNK):
                await self._ask([began + n / rate for n in range(first, min(first + CHUNK, due))])
            sent = due
            await asyncio.sleep(max(TICK_SECONDS, began + sent / rate - time.perf_counter()))
        await self._settle()
        return self._figures(seconds)

    async def saturate(self, in_flight: int, seconds: float) -> Figures:
        """Keep so many requests going."""
        began = time.perf_counter()
        while (now := time.perf_counter()) - began < seconds:
            room = in_flight - len(self._asked)
            if room >= min(CHUNK, in_flight // 2):
                await self._ask([now] * min(CHUNK, room))
            else:
                self._answered.clear()
                await asyncio.wait_for(self._answered.wait(), PATIENCE_SECONDS)
        counted = self._figures(time.perf_counter() - began)
        await self._settle()
        return counted

    async def _ask(self, due: Sequence[float]) -> None:
        turn = next(self._turns)
        agent = self._agents[turn]
        ids = [f"{self._prefix}{next(self._numbers):010d}" for _ in due]
        self._asked.update((each, (turn, at)) for each, at in zip(ids, due, strict=True))
        payloads = [agent.request(each) for each in ids]
        keys = [agent.pilot_id.encode()] * len(ids)
        await self._kafka.send_many(match_requests.TOPIC, keys, payloads, agent.headers)
        if self._reader is not None:
            self._reader.hurry()  # as agents do

    async def _settle(self) -> None:
        """Wait for the answers that are still to come."""
        until = time.perf_counter() + PATIENCE_SECONDS
        while self._asked:
            if time.perf_counter() > until:
                raise InvalidError(f"{len(self._asked)} requests were never answered")
            assert self._listening is not None
            if self._listening.done():
                self._listening.result()
            await asyncio.sleep(0.01)

    # --- hearing ----------------------------------------------------------------------------------

    async def _listen(self, reader: Reader) -> None:
        while True:
            messages = await reader.poll(0.5, 5_000)
            if messages:
                reader.hurry()
            now = time.perf_counter()
            follow: dict[int, list[Report]] = defaultdict(list)
            for message in messages:
                for turn, report in self._hear(decoded(message.payload), now):
                    follow[turn].append(report)
            self._answered.set()
            for turn, answers in follow.items():
                await self._report(self._agents[turn], answers)

    def _hear(self, told: Told, now: float) -> Iterator[tuple[int, Report]]:
        if told.type == "answer":
            yield from self._hear_answer(told)
        elif told.request_id in self._asked:
            turn, due = self._asked[told.request_id]
            if told.type == "offer":
                self._seconds.append(now - due)
                held = self._note(told)
                if self._lives:
                    yield turn, self._accept(turn, told.request_id, held)
                    return
            else:
                self._nothing += 1
            del self._asked[told.request_id]

    def _note(self, told: Told) -> tuple[AttemptId, ...]:
        held = tuple(AttemptId(job.job_id, job.epoch) for job in told.jobs)
        for each in held:
            if self._given.setdefault(each, told.request_id) != told.request_id:
                raise InvalidError(f"job {each[0]} was offered twice under epoch {each[1]}")
        self.jobs += len(held)
        return held

    def _accept(self, turn: int, request_id: str, held: tuple[AttemptId, ...]) -> Report:
        agent = self._agents[turn]
        return Report(
            report_id=ReportId(f"{request_id}-accept"),
            pilot_id=agent.pilot_id,
            slots=agent.slots,
            accept=held,
        )

    def _hear_answer(self, told: Told) -> Iterator[tuple[int, Report]]:
        request_id, _, what = told.report_id.partition("-")
        if request_id not in self._asked:
            return
        turn, _ = self._asked[request_id]
        if what == "done":
            self._done += len(told.recorded)
            del self._asked[request_id]
            return
        agent = self._agents[turn]
        finish = tuple(
            Result(job_id=job_id, epoch=epoch, outcome="done", code=Code.DONE, exit_code=0)
            for job_id, epoch in told.granted
        )
        yield (
            turn,
            Report(
                report_id=ReportId(f"{request_id}-done"),
                pilot_id=agent.pilot_id,
                slots=agent.slots,
                start=told.granted,
                finish=finish,
            ),
        )

    async def _report(self, agent: Agent, said: Sequence[Report]) -> None:
        keys = [agent.pilot_id.encode()] * len(said)
        await self._kafka.send_many(reports.TOPIC, keys, [encode(each) for each in said], agent.headers)

    def count_anew(self) -> None:
        """Forget the figures so far."""
        self._seconds.clear()
        self.jobs = self._done = 0

    # --- what came of it --------------------------------------------------------------------------

    def _figures(self, seconds: float) -> Figures:
        if self._nothing:
            raise InvalidError(
                f"{self._nothing} requests found nothing: too few jobs wait for this benchmark"
            )
        if not self._seconds:
            raise InvalidError(f"no offer came within {seconds:.1f} s")
        figures: Figures = {
            "matches": self.jobs,
            "matches_per_second": round(self.jobs / seconds),
            "offer_p50_ms": percentile([1e3 * each for each in self._seconds], 0.5),
            "offer_p99_ms": percentile([1e3 * each for each in self._seconds], 0.99),
        }
        return figures | ({"lives_per_second": round(self._done / seconds)} if self._lives else {})
