"""A client of a Kafka cluster, on top of aiokafka's producer and admin client.

Kafka's consumer groups are not used: Postgres assigns the partitions to readers and holds the offsets. `auto_offset_reset` is earliest throughout,
since some brokers report the end of a log wrongly. A topic's number of partitions comes from our own configuration. A broker that lost its topics may
create one with another number before we do.
"""

import asyncio
import random
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, takewhile
from typing import Any, NamedTuple

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaConnectionError, KafkaError, UnknownError

from wms.bus.connection_settings import KafkaSettings
from wms.bus.reader import HEADER, Message, Reader, quietly
from wms.bus.topics import Topic, find
from wms.errors import Rejected, Unavailable

__all__ = ["HEADER", "Headers", "Kafka", "KafkaSettings", "Message", "OutgoingMessage", "Reader", "bearing"]

log = structlog.get_logger()

Headers = Sequence[tuple[str, bytes]]


class OutgoingMessage(NamedTuple):
    """A message to send: key, payload and headers. The key chooses the partition; with an empty key it is an arbitrary one."""

    key: bytes
    payload: bytes
    headers: Headers = ()

    @property
    def size(self) -> int:
        """The largest number of bytes that the message takes in a batch."""
        size = len(self.key) + len(self.payload)
        return (
            size + sum(len(name) + len(value) + 16 for name, value in self.headers) if self.headers else size
        )


def bearing(key: str, payload: bytes, token: str) -> OutgoingMessage:
    """Return a message with `token` in its header. With an empty `token` it has no header."""
    return OutgoingMessage(key.encode(), payload, [(HEADER, f"Bearer {token}".encode())] if token else ())


SEND_SECONDS = 15.0
"""The time limit, in seconds, for a Kafka broker to accept messages. A broker that restarts may be back by then."""
_EXISTS = 36
_NOT_ALLOWED = frozenset({29, 31})
"""Kafka's error codes for denied access to a topic or the cluster. A client that may not create topics gets them even if the topic exists."""
REQUEST_LIMIT = 1_048_000
FRAMING = 512
"""The most bytes that a batch needs beyond the keys, payloads and headers of its messages."""


class Kafka:
    """A client of one Kafka cluster. It sends messages, creates topics, and opens readers."""

    def __init__(self, settings: KafkaSettings, client_id: str) -> None:
        self.settings = settings
        self._client_id = client_id
        self.cluster_id = ""
        self._producer: Any = None
        self._opening = asyncio.Lock()
        self._turns: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._retired: set[asyncio.Task[None]] = set()
        self._admin: AIOKafkaAdminClient | None = None
        self._known: dict[str, Topic] = {}

    async def start(self, topics: Sequence[Topic] = ()) -> None:
        """Connect, and create the missing ones of these topics.

        Raise Unavailable if no Kafka broker answers, Rejected if the broker refuses a topic.
        """
        try:
            await self._open_producer()
            self._admin = AIOKafkaAdminClient(
                **self.settings.connection(),
                client_id=self._client_id,
                request_timeout_ms=10_000,
            )
            async with asyncio.timeout(20):
                await self._admin.start()
            self.cluster_id = await self.read_cluster_id()
            await self.ensure(topics)
        except (KafkaError, OSError) as error:
            await self.close()
            raise Unavailable(f"no broker answers at {self.settings.bootstrap}{_why(error)}") from error
        except (Unavailable, Rejected):
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect; never raises."""
        producer, self._producer = self._producer, None
        admin, self._admin = self._admin, None
        if producer is not None:
            await quietly(producer.stop(), 5)
        if admin is not None:
            await quietly(admin.close(), 5)
        retired = list(self._retired)
        for task in retired:
            task.cancel()
        await asyncio.gather(*retired, return_exceptions=True)

    async def read_cluster_id(self) -> str:
        """Ask for the id of the cluster. A new id means that all topics and offsets are gone. Raise Unavailable if no Kafka broker answers."""
        if self._admin is None:
            raise Unavailable("not connected")
        try:
            async with asyncio.timeout(10):
                described = await self._admin.describe_cluster()
        except (KafkaError, OSError) as error:
            raise Unavailable(f"the broker does not tell its cluster id: {error}") from error
        return str(described.get("cluster_id") or "")

    async def ensure(self, topics: Sequence[Topic]) -> None:
        """Create the missing ones of these topics. Existing ones keep their settings.

        Raise Unavailable if no Kafka broker answers, Rejected if the broker refuses a topic.
        """
        missing = [topic for topic in topics if topic.name not in self._known]
        if not missing:
            return
        if self._admin is None:
            raise Unavailable("not connected")
        try:
            async with asyncio.timeout(20):
                response = await self._admin.create_topics([self._new(topic) for topic in missing])
        except (KafkaError, OSError) as error:
            raise Unavailable(f"topics cannot be created: {error!r}") from error
        codes = {name: code for name, code, *_ in response.topic_errors if code not in (0, _EXISTS)}
        # Who may not create a topic is refused even where the topic exists.
        there = await self._list() if set(codes.values()) & _NOT_ALLOWED else frozenset()
        for name, code in codes.items():
            if code not in _NOT_ALLOWED or name not in there:
                raise Rejected("TOPIC_REFUSED", f"the broker will not create {name}: error {code}")
        self._known.update({topic.name: topic for topic in missing})

    async def exists(self, topic: str) -> bool:
        """Return whether a topic exists, without creating it. Raise Unavailable if the Kafka broker does not answer."""
        return topic in self._known or topic in await self._list()

    async def _list(self) -> frozenset[str]:
        if self._admin is None:
            raise Unavailable("not connected")
        try:
            async with asyncio.timeout(10):
                return frozenset(await self._admin.list_topics())
        except (KafkaError, OSError) as error:
            raise Unavailable(f"the broker does not list its topics: {error!r}") from error

    def _new(self, topic: Topic) -> NewTopic:
        return NewTopic(
            topic.name,
            topic.partitions,
            self.settings.replication,
            topic_configs={"cleanup.policy": "compact"}
            if topic.is_compacted
            else {"retention.ms": str(topic.retention_hours * 3_600_000)},
        )

    async def send(self, topic: str, key: str, payload: bytes, token: str = "") -> None:
        """Send one message, with `token` in its header if that is not empty, and wait until Kafka has stored it.

        `key` chooses the partition; with an empty key it is an arbitrary one. Raise Unavailable if the message may not have arrived, Rejected if it
        is too large or the topic cannot be created.
        """
        await self.send_each(topic, [bearing(key, payload, token)])

    async def send_many(
        self, topic: str, keys: Sequence[bytes], payloads: Sequence[bytes], headers: Headers = ()
    ) -> None:
        """Send one payload for each key, all with the same headers, and wait until Kafka has stored them.

        Raise Unavailable if some may not have arrived, Rejected if one is too large or the topic cannot be created.
        """
        messages = [OutgoingMessage(*pair, headers) for pair in zip(keys, payloads, strict=True)]
        await self.send_each(topic, messages)

    async def send_each(self, topic: str, messages: Sequence[OutgoingMessage]) -> None:
        """Send messages and wait until Kafka has stored them all. A missing topic is created.

        Raise Unavailable if some may not have arrived, Rejected if one is too large or the topic cannot be created.
        """
        place = self._known.get(topic) or find(topic)
        await self.ensure([place])
        left = messages
        deadline = time.monotonic() + SEND_SECONDS
        while left := await self._deliver(place, left):
            # The embedded broker refuses as many messages as it took before the topic was created, one by one.
            if time.monotonic() > deadline:
                raise Unavailable(f"{topic}: not sent: the broker refuses without a reason")

    async def append(self, topic: str, partition: int, payload: bytes, key: bytes | None = None) -> int:
        """Send one message to a partition, and return its offset there.

        Raise Unavailable if it may not have arrived, Rejected if the topic cannot be created.
        """
        await self.ensure([self._known.get(topic) or find(topic)])
        producer = await self._open_producer()
        try:
            async with asyncio.timeout(SEND_SECONDS):
                sent = await producer.send_and_wait(topic, payload, key, partition)
        except (KafkaError, OSError) as error:
            self._retire(producer)
            raise Unavailable(f"{topic}: not sent: {error!r}") from error
        return int(sent.offset)

    async def _deliver(self, topic: Topic, messages: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        """Send messages once. Return those to be sent again: the embedded broker refused them without giving a reason.

        Raise Unavailable if the Kafka broker does not accept them within `SEND_SECONDS`.
        """
        producer = await self._open_producer()
        sending: list[tuple[Sequence[OutgoingMessage], asyncio.Future[Any]]] = []
        try:
            async with asyncio.timeout(SEND_SECONDS):
                count = min(topic.partitions, len(await producer.partitions_for(topic.name)))
                for partition, batch, inside in _batches(producer, messages, count):
                    # In aiokafka a sender's wait gets shorter the more others wait for the same partition.
                    async with self._turns[topic.name, partition]:
                        future = await producer.send_batch(batch, topic.name, partition=partition)
                    sending.append((inside, future))
                results = await asyncio.gather(*(future for _, future in sending), return_exceptions=True)
            return self._refused([inside for inside, _ in sending], results)
        except (KafkaError, OSError) as error:
            self._retire(producer)
            await _settle([future for _, future in sending])
            raise Unavailable(f"{topic.name}: not sent: {error!r}") from error

    def _refused(
        self, batches: Sequence[Sequence[OutgoingMessage]], results: Sequence[Any]
    ) -> Sequence[OutgoingMessage]:
        again: list[OutgoingMessage] = []
        for batch, result in zip(batches, results, strict=True):
            if isinstance(result, UnknownError) and not self.settings.idempotent:
                again += batch
            elif isinstance(result, BaseException):
                raise result
        return again

    async def _open_producer(self) -> Any:
        async with self._opening:
            if self._producer is None:
                self._producer = await self._start_producer()
            return self._producer

    async def _start_producer(self) -> Any:
        producer = AIOKafkaProducer(
            **self.settings.connection(),
            client_id=self._client_id,
            acks="all",
            enable_idempotence=self.settings.idempotent,
            linger_ms=0,
            max_batch_size=900_000,
            max_request_size=REQUEST_LIMIT,
            request_timeout_ms=10_000,
        )
        try:
            async with asyncio.timeout(20):
                await producer.start()
        except BaseException as error:
            await quietly(producer.stop(), 5)
            if isinstance(error, KafkaError | OSError):
                why = _why(error)
                raise Unavailable(f"no broker takes messages at {self.settings.bootstrap}{why}") from error
            raise
        return producer

    def _retire(self, producer: Any) -> None:
        """Stop a producer. The next message opens a new one.

        An idempotent producer that gave up a batch has a gap in its sequence numbers. The Kafka broker refuses its messages from then on.
        """
        if self._producer is producer:
            self._producer = None
            log.info("producer retired", client=self._client_id)
            task = asyncio.create_task(quietly(producer.stop(), SEND_SECONDS))
            self._retired.add(task)
            task.add_done_callback(self._retired.discard)

    async def reader(self, topic: str) -> Reader:
        """Return a connected reader of a topic; it reads nothing until it is assigned partitions.

        Raise Unavailable if no Kafka broker answers.
        """
        reader = Reader(
            topic, self.settings.connection(), f"{self._client_id}-reader", self.settings.fetch_wait_ms
        )
        await reader.start()
        return reader


def _batches(
    producer: Any, messages: Sequence[OutgoingMessage], count: int
) -> Iterator[tuple[int, Any, Sequence[OutgoingMessage]]]:
    """Divide messages into batches by partition, in order: yield the partition, the batch, and its messages.

    Raise Rejected if a message is too large.
    """
    by_partition: dict[int, list[OutgoingMessage]] = {}
    for message in messages:
        if message.size > REQUEST_LIMIT - FRAMING:
            text = f"a message of {len(message.payload):,} bytes is too large for the brokers"
            raise Rejected("MESSAGE_TOO_LARGE", text, "send it in parts")
        by_partition.setdefault(_partition(message.key, count), []).append(message)
    for partition, mine in by_partition.items():
        begin = 0
        while begin < len(mine):
            batch = producer.create_batch()
            taken = sum(1 for _ in takewhile(partial(_append, batch), islice(mine, begin, None)))
            yield partition, batch, mine[begin : begin + taken]
            begin += taken


def _append(batch: Any, message: OutgoingMessage) -> bool:
    """Append a message to a batch; return whether it had room. The first message always fits."""
    key, payload, headers = message
    return batch.append(timestamp=None, key=key or None, value=payload, headers=list(headers)) is not None


def _partition(key: bytes, count: int) -> int:
    return zlib.crc32(key) % count if key else random.randrange(count)


async def _settle(futures: Sequence[asyncio.Future[Any]]) -> None:
    for future in futures:
        future.cancel()
    await asyncio.gather(*futures, return_exceptions=True)


def _why(error: Exception) -> str:
    """Return why a connection failed, as the end of a sentence: nothing if the library only repeats the address."""
    return "" if isinstance(error, KafkaConnectionError) else f": {error!r}"
