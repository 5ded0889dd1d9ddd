"""Many pilots of one link in a process of its own, for bench.pilot_links: `python -m bench.link_pilots` with a Task on stdin.

It attaches its pilots and prints their ids. For each number of seconds that it reads, its pilots ask for so long, each again once it was
answered, and it prints an Outcome.
"""

import asyncio
import itertools
import ssl
import sys
import time
import uuid
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias
from urllib.parse import urlsplit

import msgspec
import uvloop

from bench.load import Agent, Told, decoded
from bench.validity import InvalidError
from wms.auth.keys import load_key
from wms.bus.grouped_sends import GroupedSends
from wms.bus.kafka import Kafka, KafkaSettings, bearing
from wms.bus.topics import site_inbox_of
from wms.cli.session import quiet
from wms.messages import match_requests

LinkKind: TypeAlias = Literal["https", "kafka"]
PATIENCE_SECONDS = 60.0
AT_ONCE = 50
"""Pilots that attach at a time."""
EVENT_LIMIT = 4 * 1024 * 1024
POLL_SECONDS = 0.5


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The pilots of one process, and how they reach the services."""

    link: LinkKind
    gateway: str
    authority: str
    """A file with the certificate of the gateway, in PEM."""
    kafka: KafkaSettings
    key: str
    """The file with the key that signs pilots' tokens."""
    site: str
    vo: str
    pilots: int
    slots: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that were offered within the time, and how long each of these requests waited for its offer, in milliseconds."""

    jobs: int
    milliseconds: list[float]
    late: int
    """The jobs that were offered after the time to requests within it."""


class Link(Protocol):
    """How the pilots of a process ask and are answered."""

    async def open(self) -> None:
        """Attach all pilots. Their answers are read from then on."""

    async def begin(self) -> None:
        """Open what was closed while nothing was asked."""

    async def ask(self, agent: Agent, request: bytes) -> None:
        """Send a request of a pilot."""


class Answers:
    """The requests that wait for their answers, by id."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[int]] = {}

    def expect(self, request_id: str) -> asyncio.Future[int]:
        """Return the future number of jobs that the request is offered."""
        future = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        return future

    def take(self, told: Told) -> None:
        """Complete the request that this order answers; InvalidError: it found nothing."""
        if (future := self._waiting.pop(told.request_id, None)) is None:
            return
        if told.type == "offer":
            future.set_result(len(told.jobs))
        else:
            future.set_exception(
                InvalidError("a request found nothing: too few jobs wait for this benchmark")
            )


class ViaKafka:
    """All pilots of the process over one connection to the broker, which is the least that Kafka may cost them."""

    def __init__(self, task: Task, agents: list[Agent], answers: Answers) -> None:
        self._site = task.site
        self._answers = answers
        self._keys = {agent.pilot_id.encode() for agent in agents}
        self._kafka = Kafka(task.kafka, "bench")
        self._sends = GroupedSends(self._kafka)

    async def open(self) -> None:
        await self._kafka.start()
        inbox = site_inbox_of(self._site)
        await self._kafka.ensure([inbox])
        self._reader = await self._kafka.reader(inbox.name)
        await self._reader.assign_end()
        self._reading = asyncio.create_task(self._read())

    async def begin(self) -> None:
        """Do nothing: the connection to the broker stays open."""

    async def ask(self, agent: Agent, request: bytes) -> None:
        await self._sends.send(match_requests.TOPIC, bearing(agent.pilot_id, request, agent.token))
        self._reader.hurry()

    async def _read(self) -> None:
        while True:
            for message in await self._reader.poll(POLL_SECONDS, 5_000):
                self._reader.hurry()
                if message.key in self._keys:
                    self._answers.take(decoded(message.payload))


class ViaHttps:
    """Two connections of each pilot to the gateway, as agents have: the stream of its orders, and one for its messages."""

    def __init__(self, task: Task, agents: list[Agent], answers: Answers) -> None:
        parts = urlsplit(task.gateway)
        self._place = parts.hostname or "", parts.port or 443
        self._trusted = ssl.create_default_context(cafile=task.authority)
        self._agents = agents
        self._answers = answers
        self._lines: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._reading: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        for first in range(0, len(self._agents), AT_ONCE):
            await asyncio.gather(*map(self._attach, self._agents[first : first + AT_ONCE]))

    async def begin(self) -> None:
        """Connect anew for messages: the gateway has cut connections that were idle since the last round."""
        for _, writer in self._lines.values():
            writer.close()
        for first in range(0, len(self._agents), AT_ONCE):
            agents = self._agents[first : first + AT_ONCE]
            lines = await asyncio.gather(*(self._connect() for _ in agents))
            self._lines.update((each.pilot_id, line) for each, line in zip(agents, lines, strict=True))

    async def ask(self, agent: Agent, request: bytes) -> None:
        reader, writer = self._lines[agent.pilot_id]
        body = b'{"messages":[%b]}' % request
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(self._head("POST", "messages", agent, kind) + body)
        if b" 202 " not in await reader.readuntil(b"\r\n\r\n"):
            raise InvalidError(f"a request was refused: {await reader.read(300)!r}")
        await reader.readuntil(b'"taken":1}')

    async def _attach(self, agent: Agent) -> None:
        reader, writer = await self._connect()
        writer.write(self._head("GET", "orders", agent))
        if b" 200 " not in await reader.readuntil(b"\r\n\r\n"):
            raise InvalidError(f"a stream was refused: {await reader.read(300)!r}")
        await reader.readuntil(b":\n\n")
        self._reading.append(asyncio.create_task(self._read(reader, writer)))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self._place, ssl=self._trusted, limit=EVENT_LIMIT)

    def _head(self, method: str, path: str, agent: Agent, more: str = "") -> bytes:
        host = f"{self._place[0]}:{self._place[1]}"
        line = f"{method} /api/v1/pilots/{agent.pilot_id}/{path} HTTP/1.1\r\nHost: {host}\r\n"
        return f"{line}Authorization: Bearer {agent.token}\r\n{more}\r\n".encode()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                event = await reader.readuntil(b"\n\n")
                if (start := event.find(b"data: ")) >= 0:
                    self._answers.take(decoded(event[start + 6 :]))
        finally:
            writer.close()


class Pilots:
    """The pilots of one process. Each asks, waits for its offer, and asks again."""

    def __init__(self, task: Task) -> None:
        key = load_key(Path(task.key))
        self.agents = [Agent(key, task.site, task.vo, task.slots) for _ in range(task.pilots)]
        self._answers = Answers()
        via = ViaHttps if task.link == "https" else ViaKafka
        self.link: Link = via(task, self.agents, self._answers)
        self._prefix = uuid.uuid4().hex[:6]
        self._numbers = itertools.count()

    async def ask_for(self, seconds: float) -> Outcome:
        """Let all pilots ask for so long; return what they were offered. InvalidError: an offer never came."""
        await self.link.begin()
        until = time.perf_counter() + seconds
        found = await asyncio.gather(*(self._ask_on(each, until) for each in self.agents))
        offers = list(itertools.chain.from_iterable(found))
        in_time = [each for each in offers if each.at < until]
        return Outcome(
            jobs=sum(each.jobs for each in in_time),
            milliseconds=[1e3 * each.seconds for each in in_time],
            late=sum(each.jobs for each in offers if each.at >= until),
        )

    async def _ask_on(self, agent: Agent, until: float) -> list["Offered"]:
        offers: list[Offered] = []
        while (began := time.perf_counter()) < until:
            request_id = f"{self._prefix}{next(self._numbers):010d}"
            answer = self._answers.expect(request_id)
            await self.link.ask(agent, agent.request(request_id))
            try:
                jobs = await asyncio.wait_for(answer, PATIENCE_SECONDS)
            except TimeoutError:
                raise InvalidError("a request was never answered") from None
            now = time.perf_counter()
            offers.append(Offered(jobs, now - began, now))
        return offers


class Offered(NamedTuple):
    """An offer: how many jobs, how many seconds after the request, and when."""

    jobs: int
    seconds: float
    at: float


async def work(task: Task) -> None:
    pilots = Pilots(task)
    await pilots.link.open()
    _say([each.pilot_id for each in pilots.agents])
    while line := await asyncio.to_thread(sys.stdin.readline):
        _say(await pilots.ask_for(float(line)))


def _say(what: object) -> None:
    sys.stdout.write(msgspec.json.encode(what).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    quiet()
    uvloop.run(work(msgspec.json.decode(sys.stdin.readline(), type=Task)))
