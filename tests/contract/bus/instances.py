"""What the contract tests of the bus stand on: one broker, one database, and instances that share the work."""

import asyncio
import contextlib
import itertools
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, Verifier, mint
from wms.bus.consumer import Consumer, ConsumerSettings, Delivery
from wms.bus.kafka import Kafka, KafkaSettings, Message
from wms.bus.membership import Membership
from wms.bus.relay import Relay
from wms.bus.topics import Topic
from wms.db import instance
from wms.db.database import GONE, Database, Transaction
from wms.embedded.apache_kafka import ApacheKafka
from wms.embedded.server import KafkaServer
from wms.ids import InstanceId
from wms.messages.wire import Codec, encode
from wms.runtime.loop import endless

PARTITIONS = 4

_numbers = itertools.count(1)


class Note(msgspec.Struct, frozen=True, kw_only=True, tag="note", forbid_unknown_fields=True):
    """The one message of these tests. A spoilt one cannot be handled."""

    n: int
    spoilt: bool = False
    text: str = ""


class Keys:
    """Keys of an issuer, and tokens by them."""

    def __init__(self, directory: Path) -> None:
        generate_keys(directory)
        self.jwks = directory / "jwks.json"
        self._key = load_key(directory / "issuer.pem")
        self.verifier = Verifier.from_file(self.jwks)

    def token(self, owner: str = "ann", *, lifetime: float = 3600) -> str:
        claims = Claims(kind="user", owner=owner, group="physics", vo="lhcb")
        return mint(self._key, claims, lifetime, time.time())


class Bus:
    """One database, one broker, one topic of the test's own."""

    def __init__(self, server: KafkaServer, url: str, keys: Keys) -> None:
        self.server = server
        self.url = url
        self.keys = keys
        self.token = keys.token()
        self.topic = Topic(f"test.{uuid.uuid4().hex}", PARTITIONS, 1)
        self.settings = settings_for(server)
        self._open = contextlib.AsyncExitStack()
        self.kafka: Kafka
        self.db: Database

    @classmethod
    @asynccontextmanager
    async def opened(cls, server: KafkaServer, url: str, keys: Keys) -> AsyncIterator[Self]:
        """Connect to both, with a table for the effects of messages; close what the test opened."""
        bus = cls(server, url, keys)
        try:
            bus.kafka = await bus.connect()
            bus.db = await bus.connect_db()
            await bus.sql("create table effect (n bigint not null, at bigint generated always as identity)")
            yield bus
        finally:
            await bus.close()

    async def connect(self) -> Kafka:
        """Return a connection that is closed with the test."""
        kafka = Kafka(self.settings, f"test-{next(_numbers)}")
        await kafka.start([self.topic])
        self._open.push_async_callback(kafka.close)
        return kafka

    async def connect_db(self) -> Database:
        db = await Database.connect(self.url, size=4, application="test")
        self._open.push_async_callback(db.close)
        return db

    async def close(self) -> None:
        await self._open.aclose()

    async def send(self, numbers: Sequence[int], *, token: str | None = None, **more: Any) -> None:
        """Send notes with these numbers, each under a key of its own."""
        notes = [encode(Note(n=n, **more)) for n in numbers]
        await self.send_raw(notes, [b"k%d" % n for n in numbers], token=token)

    async def send_raw(
        self, payloads: Sequence[bytes], keys: Sequence[bytes] = (), *, token: str | None = None
    ) -> None:
        headers = [("authorization", b"Bearer " + (self.token if token is None else token).encode())]
        keys = keys or [b"k"] * len(payloads)
        await self.kafka.send_many(self.topic.name, keys, payloads, headers)

    async def read_all(self, topic: str, partitions: int, count: int, within: float = 20) -> list[Message]:
        """Return the topic's first `count` messages, or more."""
        reader = await self.kafka.reader(topic)
        try:
            reader.assign(dict.fromkeys(range(partitions), 0))
            found: list[Message] = []

            async def enough() -> bool:
                found.extend(await reader.poll(0.2, 5_000))
                return len(found) >= count

            await eventually(enough, within)
            return found
        finally:
            await reader.close()

    async def sql(self, statement: str, *args: Any) -> list[Any]:
        async with self.db.transaction() as tx:
            return await tx.fetch(statement, *args)

    async def effects(self) -> list[int]:
        """Return the numbers that took effect, as often as they did."""
        return [row["n"] for row in await self.sql("select n from effect order by n")]

    async def took_effect(self, count: int, within: float = 20) -> list[int]:
        """Wait for so many effects and return them."""

        async def enough() -> bool:
            ((found,),) = await self.sql("select count(*) from effect")
            return bool(found >= count)

        await eventually(enough, within)
        return await self.effects()

    async def letters(self) -> list[Any]:
        return await self.sql("select * from dead_letter order by dead_letter_id")

    async def caught_up(self, consumer: str = "test", within: float = 20) -> None:
        """Wait until the offsets are where the logs end."""
        reader = await self.kafka.reader(self.topic.name)
        try:
            reader.assign(dict.fromkeys(range(PARTITIONS), 0))
            ends: dict[int, int] = {}

            async def at_the_end() -> bool:
                await reader.poll(0.1, 10_000)
                ends.update({part: reader.high_water(part) for part in range(PARTITIONS)})
                rows = await self.sql(
                    "select partition, next_offset from consumer_offset where consumer = $1 and cluster_id = $2",
                    consumer,
                    self.kafka.cluster_id,
                )
                at = {row["partition"]: row["next_offset"] for row in rows}
                return (
                    all(at.get(part, 0) == end for part, end in ends.items()) and await reader.unread() == 0
                )

            await eventually(at_the_end, within)
        finally:
            await reader.close()

    @asynccontextmanager
    async def instance(self, **parts: Any) -> AsyncIterator["Instance"]:
        """Run an instance until the end of the block, where it leaves in good order."""
        one = Instance(self, await self.connect_db(), await self.connect(), **parts)
        await one.start()
        try:
            yield one
        finally:
            await one.stop()


class Instance:
    """A consumer with what a host gives it: a heartbeat and a relay."""

    def __init__(
        self,
        bus: Bus,
        db: Database,
        kafka: Kafka,
        *,
        name: str = "test",
        verified: bool = False,
        batch: int = 512,
        lanes: int = 1,
        on_refused: Any = None,
        outgoing: str = "",
        policy: ConsumerSettings | None = None,
        **parts: Any,
    ) -> None:
        self.instance_id = InstanceId(f"test-{next(_numbers):04}-{uuid.uuid4().hex[:6]}")
        self.bus = bus
        self.db = db
        self.membership = Membership(self.instance_id)
        self.relay = Relay(db, kafka)
        self.batches: list[list[int]] = []
        self.senders: set[str] = set()
        self.hold = asyncio.Event()
        self.hold.set()
        self.holding = asyncio.Event()
        self.accept_spoilt = False
        self._outgoing = outgoing
        self._tasks: list[asyncio.Task[None]] = []
        self.consumer: Consumer[Note] = Consumer(
            name,
            bus.topic,
            Codec(Note),
            self._handle,
            db=db,
            kafka=kafka,
            membership=self.membership,
            verifier=bus.keys.verifier if verified else None,
            now=time.time,
            on_refused=on_refused,
            policy=policy or ConsumerSettings(batch=batch, lanes=lanes),
            **parts,
        )

    async def _handle(self, tx: Transaction, batch: list[Delivery[Note]]) -> None:
        if not self.hold.is_set():
            self.holding.set()
            await self.hold.wait()
        numbers = [each.message.n for each in batch]
        self.senders |= {each.principal.owner for each in batch if each.principal}
        await tx.execute("insert into effect (n) select unnest($1::bigint[])", numbers)
        if any(each.message.spoilt for each in batch) and not self.accept_spoilt:
            raise ValueError("a spoilt note")
        if self._outgoing:
            for each in batch:
                tx.send(self._outgoing, str(each.message.n), each.message)
        self.batches.append(numbers)

    async def start(self) -> None:
        await self.beat()
        loops = (endless(self.consumer), self.relay.run(), self._beat_on())
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def beat(self) -> None:
        async with self.db.transaction() as tx:
            beat = instance.Beat(
                instance_id=self.instance_id,
                service="test",
                consumers=[self.consumer.name],
                host="test",
                pid=1,
                version="0",
                health="{}",
            )
            self.membership.update(await instance.beat(tx, beat))

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            with contextlib.suppress(*GONE):
                await self.beat()

    async def fall_silent(self) -> None:
        """Be taken for dead by the others, without knowing it."""
        self._tasks[2].cancel()
        await asyncio.wait([self._tasks[2]])
        await self.bus.sql("delete from service_instance where instance_id = $1", self.instance_id)

    @property
    def partitions(self) -> set[int]:
        return set(self.consumer._handling.offsets)

    async def stop(self) -> None:
        self.hold.set()
        consuming, relaying, beating = self._tasks
        for task in (consuming, beating):
            task.cancel()
        await asyncio.wait([consuming, beating])
        await self.relay.drain(5)
        relaying.cancel()
        await asyncio.wait([relaying])
        async with self.db.transaction() as tx:
            await instance.leave(tx, self.instance_id)
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                task.result()


def settings_for(server: KafkaServer) -> KafkaSettings:
    """Return how the system's services reach such a broker."""
    if isinstance(server, ApacheKafka):
        return KafkaSettings(bootstrap=server.bootstrap)
    return KafkaSettings(bootstrap=server.bootstrap, idempotent=False, fetch_wait_ms=0)
