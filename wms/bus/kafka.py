"""One thin wrapper around aiokafka: the only module that knows it.

Consumers are assigned their partitions by hand, never by a Kafka group: who reads what is decided in Postgres, where the
offsets are. `auto_offset_reset` is earliest throughout, since not every broker tells the end of a log rightly.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from wms.bus.topics import Topic
from wms.errors import Rejected, Unavailable

HEADER = "authorization"
"""The header that carries the sender's token; a payload never does."""

Headers = Sequence[tuple[str, bytes]]

_EXISTS = 36


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach the brokers."""

    bootstrap: str = "127.0.0.1:9092"
    fetch_wait_ms: int = 100
    """How long a broker may hold a fetch that finds nothing. The embedded one does not wake it early: there, few."""
    idempotent: bool = True
    """Whether the producer numbers its messages, so that a broker drops those sent twice. The embedded cannot."""
    replication: int = 1


class Kafka:
    """A connection to one cluster: produce, consume, create topics."""

    def __init__(self, settings: Settings, client_id: str) -> None:
        self.settings = settings
        self._client_id = client_id
        self.cluster_id = ""
        self._producer: AIOKafkaProducer | None = None
        self._admin: AIOKafkaAdminClient | None = None
        self._known: set[str] = set()

    async def start(self, topics: Sequence[Topic] = ()) -> None:
        """Connect and create what topics are missing, or raise Unavailable."""
        try:
            self._producer = AIOKafkaProducer(
                bootstrap_servers=self.settings.bootstrap,
                client_id=self._client_id,
                acks="all",
                enable_idempotence=self.settings.idempotent,
                linger_ms=0,
                max_batch_size=900_000,
                max_request_size=1_048_000,
                request_timeout_ms=10_000,
            )
            await asyncio.wait_for(self._producer.start(), 20)
            self._admin = AIOKafkaAdminClient(
                bootstrap_servers=self.settings.bootstrap,
                client_id=self._client_id,
                request_timeout_ms=10_000,
            )
            await asyncio.wait_for(self._admin.start(), 20)
            self.cluster_id = await self.read_cluster_id()
            await self.ensure(topics)
        except (KafkaError, OSError, TimeoutError) as error:
            await self.close()
            raise Unavailable(f"no broker answers at {self.settings.bootstrap}: {error}") from error

    async def close(self) -> None:
        """Close what is open; never raises."""
        for part in (self._producer and self._producer.stop(), self._admin and self._admin.close()):
            if part is not None:
                try:
                    await asyncio.wait_for(part, 5)
                except (KafkaError, OSError, TimeoutError):
                    continue

    async def read_cluster_id(self) -> str:
        """Ask the cluster who it is: another id means that all topics and offsets are gone."""
        assert self._admin is not None
        try:
            described = await asyncio.wait_for(self._admin.describe_cluster(), 10)
        except (KafkaError, OSError, TimeoutError) as error:
            raise Unavailable(f"the broker does not tell its cluster id: {error}") from error
        return str(described.get("cluster_id") or "")

    async def ensure(self, topics: Sequence[Topic]) -> None:
        """Create the topics that are missing; one that exists stays as it is."""
        assert self._admin is not None
        missing = [topic for topic in topics if topic.name not in self._known]
        if not missing:
            return
        response = await asyncio.wait_for(
            self._admin.create_topics([self._new(topic) for topic in missing]), 20
        )
        for name, code, *_ in response.topic_errors:
            if code not in (0, _EXISTS):
                raise Rejected("TOPIC_REFUSED", f"the broker will not create {name}: error {code}")
        self._known.update(topic.name for topic in missing)

    def _new(self, topic: Topic) -> NewTopic:
        return NewTopic(
            topic.name,
            topic.partitions,
            self.settings.replication,
            topic_configs={"retention.ms": str(topic.retention_hours * 3_600_000)},
        )

    async def send(self, topic: str, key: str, payload: bytes, token: str = "") -> None:
        """Send one message and wait until the broker has it."""
        headers = [(HEADER, f"Bearer {token}".encode())] if token else []
        await self.send_many(topic, [key.encode()], [payload], headers)

    async def send_many(
        self, topic: str, keys: Sequence[bytes], payloads: Sequence[bytes], headers: Headers = ()
    ) -> None:
        """Send messages and wait until the broker has them all. Unavailable: some of them may have arrived."""
        assert self._producer is not None
        try:
            sent = [
                await self._producer.send(topic, key=key or None, value=payload, headers=list(headers))
                for key, payload in zip(keys, payloads, strict=True)
            ]
            await asyncio.wait_for(asyncio.gather(*sent), 30)
        except (KafkaError, OSError, TimeoutError) as error:
            raise Unavailable(f"{topic}: not sent: {error!r}") from error

    async def reader(self, topic: str) -> "Reader":
        """Return a reader of one topic, with no partition yet."""
        reader = Reader(self, topic)
        await reader.start()
        return reader


class Message(msgspec.Struct, frozen=True):
    """What a reader brings."""

    partition: int
    offset: int
    key: bytes | None
    payload: bytes
    token: str
    """Without its `Bearer `; empty where there is none."""


class Reader:
    """Reads partitions of one topic that it is told, from offsets that it is told."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self.topic = topic
        settings = kafka.settings
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap,
            client_id=f"{kafka._client_id}-reader",  # noqa: SLF001 - the wrapper's two halves
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=settings.fetch_wait_ms,
            max_partition_fetch_bytes=4_194_304,
            fetch_max_bytes=16_777_216,
            check_crcs=False,
            request_timeout_ms=20_000,
        )

    async def start(self) -> None:
        """Connect, or raise Unavailable."""
        try:
            await asyncio.wait_for(self._consumer.start(), 20)
        except (KafkaError, OSError, TimeoutError) as error:
            raise Unavailable(f"{self.topic}: no broker to read from: {error}") from error

    async def close(self) -> None:
        """Disconnect; never raises."""
        try:
            await asyncio.wait_for(self._consumer.stop(), 5)
        except (KafkaError, OSError, TimeoutError):
            return

    def assign(self, offsets: dict[int, int]) -> None:
        """Read these partitions from these offsets on, and nothing else."""
        self._consumer.assign([TopicPartition(self.topic, partition) for partition in offsets])
        for partition, offset in offsets.items():
            self._consumer.seek(TopicPartition(self.topic, partition), offset)

    async def assign_end(self) -> None:
        """Read partition 0 from its end on: what is sent after this returns is seen, and perhaps a little before it."""
        partition = TopicPartition(self.topic, 0)
        self._consumer.assign([partition])
        try:
            await asyncio.wait_for(self._consumer.seek_to_end(partition), 20)
            await asyncio.wait_for(self._consumer.position(partition), 20)
        except (KafkaError, OSError, TimeoutError) as error:
            raise Unavailable(f"{self.topic}: no position to read from: {error}") from error

    async def poll(self, timeout_seconds: float, limit: int) -> list[Message]:
        """Return what has come: each partition's messages in order; empty when nothing came in time."""
        try:
            found = await self._consumer.getmany(timeout_ms=int(timeout_seconds * 1000), max_records=limit)
        except (KafkaError, OSError) as error:
            raise Unavailable(f"{self.topic}: not read: {error!r}") from error
        return [_message(record) for records in found.values() for record in records]

    def high_water(self, partition: int) -> int:
        """Return the end of the partition's log as the last fetch told it."""
        return self._consumer.highwater(TopicPartition(self.topic, partition)) or 0


def _message(record: Any) -> Message:
    token = next((value for name, value in record.headers if name == HEADER), b"")
    return Message(
        record.partition,
        record.offset,
        record.key,
        record.value or b"",
        token[:16_384].decode("ascii", "replace").removeprefix("Bearer "),
    )
