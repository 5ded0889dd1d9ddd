"""Requests of any number of clients over one connection to the broker, and their answers through one inbox.

Requests and answers may be lost on the way. So a request is sent again under the same id until its answer arrives or its time is over. A
service handles each id once. The connection is monitored. If the broker is gone, or another cluster has taken its place, the connection is
reopened, and all requests that wait for an answer are sent again. An answer belongs to the request of the same owner, client and id. The
owner is in the answer's key.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from wms.bus.grouped_sends import GroupedSends
from wms.bus.inbox import Inbox
from wms.bus.kafka import Kafka, KafkaSettings, OutgoingMessage, bearing
from wms.bus.reader import Reader
from wms.bus.topics import SHARED, Topic
from wms.client.credential import UserCredential
from wms.errors import Rejected, Unavailable
from wms.messages import commands, queries
from wms.messages.replies import Refused, Reply, address
from wms.messages.wire import Codec, encode

A = TypeVar("A", bound=msgspec.Struct)

POLL_SECONDS = 0.5
LOOK_SECONDS = 2.0
"""Seconds between checks that the broker still belongs to the same cluster, while an answer is awaited."""
RECONNECT_SECONDS = 0.3
PAUSES = (5.0, 10.0, 15.0)
"""Seconds between sending a request and sending it again; the last value repeats."""
CONNECT_SECONDS = 15.0

_TOPICS = [topic for topic in SHARED if topic.name in (commands.TOPIC, queries.TOPIC)]


class BrokerConnection:
    """A connection to one Kafka cluster, with the inbox that is read over it. Its future `broken` is set when it no longer works."""

    def __init__(self, kafka: Kafka, inbox: Inbox[Reply]) -> None:
        self.kafka = kafka
        self.inbox = inbox
        self.sends = GroupedSends(kafka)
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def break_off(self) -> None:
        """Mark the connection as broken. Its `KafkaRequests` then opens a new one."""
        if not self.broken.done():
            self.broken.set_result(None)

    async def close(self) -> None:
        """Disconnect from the cluster, and mark the connection as broken."""
        self.break_off()
        self.sends.close()
        for close in (self.inbox.close, self.kafka.close):
            try:
                await close()
            except asyncio.CancelledError:
                # aiokafka raises the cancellation of a task of its own. This task goes on unless it was cancelled itself.
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise


class KafkaRequests:
    """Sends requests to services over one broker connection, each with its user's token, and returns the answers."""

    def __init__(self, settings: KafkaSettings, inbox: Topic, name: str) -> None:
        """Make an object without a connection. `inbox` is the topic of the answers, `name` the Kafka client id of the connection."""
        self._settings = settings
        self._inbox = inbox
        self._name = name
        self._codec: Codec[Reply] = Codec(Reply, rules=False)
        self._waiting: dict[tuple[str, str], asyncio.Future[Reply]] = {}
        """For each request that waits for its answer, the future of the answer, by client and request id."""
        self._keys = Counter[bytes]()
        """How many requests wait for an answer with each key. Answers with any other key are not decoded."""
        self._line: BrokerConnection | None = None
        self._changed = asyncio.Event()
        self._fault = Unavailable(f"no broker answers at {settings.bootstrap}")
        self._keeper: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def waiting(self) -> int:
        """The number of requests that wait for their answers."""
        return len(self._waiting)

    def begin(self) -> asyncio.Task[None]:
        """Begin to connect. Return the task that keeps the connection open; it ends only by an error or by `close`."""
        self._keeper = asyncio.create_task(self._keep(), name="broker requests")
        return self._keeper

    async def open(self, timeout: float) -> None:
        """Connect. Raise Unavailable if no broker answers within `timeout` seconds."""
        self.begin()
        try:
            await self._ready(time.monotonic() + timeout)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect, and cancel the requests that wait for an answer."""
        self._closing = True
        while self._keeper is not None and not self._keeper.done():
            # In a loop, since wait_for of Python 3.11 loses a cancellation that arrives together with its result.
            self._keeper.cancel()
            await asyncio.wait([self._keeper], timeout=0.2)
        for future in self._waiting.values():
            future.cancel()

    async def ask(
        self,
        topic: str,
        request_id: str,
        request: msgspec.Struct,
        answer: type[A],
        timeout: float,
        *,
        credential: UserCredential,
        client: str,
        in_order: bool = True,
    ) -> A:
        """Send a request of `client` with its user's token until it is answered, and return the answer, which is of the type `answer`.

        If `in_order` is True, the request is handled after all earlier requests of the user. Raise Rejected if the service refuses it, or if
        a request of this id waits already. Raise Unavailable if no answer came within `timeout` seconds.
        """
        payload = encode(request)
        key = credential.owner if in_order else request_id
        with self._expecting(credential.owner, client, request_id) as future:
            deadline = time.monotonic() + timeout
            for pause in _pauses():
                line = await self._ready(deadline)
                message = bearing(key, payload, credential.token)
                sent = asyncio.create_task(self._send(line, topic, message))
                await _first_of(deadline, pause, future, line.broken)
                await _ended(sent)
                if future.done():
                    return _checked(future.result(), answer)
                if time.monotonic() >= deadline:
                    break
        raise Unavailable(f"no answer within {timeout:g} s: {await self._guess()}")

    async def end_of(self, topic: Topic) -> Reader:
        """Return a reader of a topic that reads only new records.

        Raise Unavailable if there is no connection, or this client may not read the topic.
        """
        line = await self._ready(time.monotonic() + CONNECT_SECONDS)
        reader = await line.kafka.reader(topic.name)
        try:
            await reader.assign_end(topic.partitions)
        except BaseException:
            await reader.close()
            raise
        return reader

    @contextlib.contextmanager
    def _expecting(self, owner: str, client: str, request_id: str) -> Iterator[asyncio.Future[Reply]]:
        name = client, request_id
        if name in self._waiting:
            raise Rejected("ID_IN_USE", f"the id {request_id} is waiting for its answer already", "await it")
        key = address(owner, client)[1].encode()
        future = self._waiting[name] = asyncio.get_running_loop().create_future()
        self._keys[key] += 1
        try:
            yield future
        finally:
            del self._waiting[name]
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]

    async def _send(self, line: BrokerConnection, topic: str, message: OutgoingMessage) -> None:
        try:
            await line.sends.send(topic, message)
            line.inbox.hurry()
        except Unavailable as fault:
            self._fault = fault
            line.break_off()

    async def _ready(self, deadline: float) -> BrokerConnection:
        """Return the connection once it is open. Raise Unavailable if none is open at the deadline, in seconds of the monotonic clock."""
        while self._line is None or self._line.broken.done():
            self._changed.clear()
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    await self._changed.wait()
            except TimeoutError:
                raise self._fault from None
            if self._keeper is not None and self._keeper.done():
                self._keeper.result()
        return self._line

    async def _keep(self) -> None:
        """Keep a connection open, and open a new one when it breaks, until `close` is called."""
        try:
            while not self._closing:
                try:
                    self._line = await self._connect()
                    self._changed.set()
                    await self._read(self._line)
                except (Unavailable, OSError, TimeoutError) as fault:
                    self._fault = fault if isinstance(fault, Unavailable) else Unavailable(repr(fault))
                finally:
                    await self._hang_up()
                await asyncio.sleep(RECONNECT_SECONDS)
        finally:
            self._changed.set()

    async def _connect(self) -> BrokerConnection:
        kafka = Kafka(self._settings, self._name)
        await kafka.start(_TOPICS)
        inbox = Inbox(kafka, self._inbox, self._codec, self._keys)
        try:
            await inbox.start()
        except BaseException:
            await inbox.close()
            await kafka.close()
            raise
        return BrokerConnection(kafka, inbox)

    async def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            await line.close()

    async def _read(self, line: BrokerConnection) -> None:
        looked_at = time.monotonic()
        while not (line.broken.done() or self._closing):
            for reply in await line.inbox.poll(POLL_SECONDS):
                self._deliver(reply)
            if self._waiting and time.monotonic() - looked_at > LOOK_SECONDS:
                looked_at = time.monotonic()
                await _same_cluster(line.kafka)

    def _deliver(self, reply: Reply) -> None:
        future = self._waiting.get((reply.client, _answers(reply)))
        if future is not None and not future.done():
            future.set_result(reply)

    async def _guess(self) -> str:
        if self._line is None:
            return self._fault.message
        return "the broker is there, so the job manager is down or far behind; `wms status` shows it"


def _pauses() -> Iterator[float]:
    yield from PAUSES
    while True:
        yield PAUSES[-1]


async def _first_of(deadline: float, pause: float, *futures: asyncio.Future[Any]) -> None:
    left = min(pause, max(0.0, deadline - time.monotonic()))
    await asyncio.wait(futures, timeout=left, return_when=asyncio.FIRST_COMPLETED)


async def _ended(task: asyncio.Task[None]) -> None:
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.2)


async def _same_cluster(kafka: Kafka) -> None:
    if await kafka.read_cluster_id() != kafka.cluster_id:
        raise Unavailable("the broker has begun anew: connecting afresh")


def _answers(reply: Reply) -> str:
    for name in ("query_id", "command_id", "reply_to"):
        found = getattr(reply, name, None)
        if found is not None:
            return str(found)
    return ""


def _checked(reply: Reply, wanted: type[A]) -> A:
    if isinstance(reply, Refused):
        raise Rejected(reply.code, reply.message, reply.remedy, reply.details)
    if not isinstance(reply, wanted):
        raise TypeError(f"{type(reply).__name__} answers what only {wanted.__name__} should")
    return reply
