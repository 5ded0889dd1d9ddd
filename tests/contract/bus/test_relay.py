"""What a transaction sends goes out if it commits, whoever dies then; and not otherwise."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.contract.bus.instances import Bus, Note
from tests.waiting import eventually
from wms.bus.connection_settings import KafkaSettings
from wms.bus.kafka import Kafka
from wms.bus.relay import Relay
from wms.bus.topics import Topic
from wms.db import outbox
from wms.db.database import Database
from wms.messages.wire import Codec

CODEC = Codec[Note](Note)


@asynccontextmanager
async def relay(bus: Bus) -> AsyncIterator[tuple[Database, Relay]]:
    db = await bus.connect_db()
    one = Relay(db, await bus.connect())
    task = asyncio.create_task(one.run())
    try:
        yield db, one
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


def some_topic() -> str:
    return f"test.out.{uuid.uuid4().hex}"


async def post(db: Database, topic: str, *numbers: int) -> None:
    async with db.transaction() as tx:
        for n in numbers:
            tx.send(topic, f"k{n}", Note(n=n))


async def post_and_fail(db: Database, topic: str) -> None:
    async with db.transaction() as tx:
        tx.send(topic, "k", Note(n=1))
        raise ZeroDivisionError


async def answer_and_fail(db: Database, topic: str) -> None:
    async with db.transaction() as tx:
        tx.reply(topic, "k", Note(n=1))
        raise ZeroDivisionError


async def published(bus: Bus, topic: str, count: int) -> list[int]:
    return [CODEC.decode(each.payload).n for each in await bus.read_all(topic, 1, count)]


async def outbox_is_empty(bus: Bus) -> None:
    async def empty() -> bool:
        return not await bus.sql("select outbox_id from outbox")

    await eventually(empty)


async def make_due(bus: Bus) -> None:
    """Let the time pass after which a relay takes what another left."""
    await bus.sql("update outbox set due_at = now() - interval '1 s'")


async def test_what_committed_is_published_and_then_forgotten(bus: Bus) -> None:
    topics = [some_topic() for _ in range(3)]
    async with relay(bus) as (db, one):
        for round_ in range(5):
            async with db.transaction() as tx:
                for topic in topics:
                    tx.send(topic, "a", Note(n=2 * round_))
                    tx.send(topic, "b", Note(n=2 * round_ + 1))
        for topic in topics:
            assert await published(bus, topic, 10) == list(range(10))
        await outbox_is_empty(bus)

        assert one.sent == 30


async def test_what_was_gathered_is_sent_and_forgotten_at_once_when_the_end_comes(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = some_topic()
    monkeypatch.setattr("wms.bus.relay.find", lambda name: Topic(name, 1, 1, gathered_seconds=3_600.0))
    monkeypatch.setattr("wms.bus.relay.FORGET_EVERY_SECONDS", 3_600.0)
    async with relay(bus) as (db, one):
        await post(db, topic, 1)
        await post(db, topic, 2, 3)
        assert one.sent == 0
        await one.drain(20)

        assert one.sent == 3
        assert await bus.sql("select outbox_id from outbox") == []
    assert await published(bus, topic, 3) == [1, 2, 3]


async def test_answers_go_out_without_having_been_in_the_outbox(bus: Bus) -> None:
    topic = some_topic()
    async with relay(bus) as (db, one):
        async with db.transaction() as tx:
            tx.reply(topic, "a", Note(n=1))
            tx.reply(topic, "b", Note(n=2))
            posted = await tx.post()
            assert [each.outbox_id for each in posted] == [None]

        assert await published(bus, topic, 2) == [1, 2]
        await one.drain(10)
        assert one.sent == 2


async def test_answers_of_a_transaction_that_failed_are_never_sent(bus: Bus) -> None:
    topic = some_topic()
    async with relay(bus) as (db, _):
        with pytest.raises(ZeroDivisionError):
            await answer_and_fail(db, topic)
        async with db.transaction() as tx:
            tx.reply(topic, "k", Note(n=2))

        assert await published(bus, topic, 1) == [2]


async def test_to_forget_waits_for_no_disk_and_leaves_the_next_transaction_as_it_is(bus: Bus) -> None:
    rows = await bus.sql(
        "insert into outbox (topic, keys, payloads, due_at) values ($1, $2, $3, now() + interval '1 h') returning outbox_id",
        some_topic(),
        [b"k"],
        [b"{}"],
    )
    async with bus.db.transaction() as tx:
        await outbox.delete(tx, [rows[0]["outbox_id"]])
        assert await tx.fetchval("show synchronous_commit") == "off"
        pid = await tx.fetchval("select pg_backend_pid()")
    async with bus.db.transaction() as tx:
        assert await tx.fetchval("select pg_backend_pid()") == pid
        assert await tx.fetchval("show synchronous_commit") == "on"


async def test_a_transaction_costs_no_statement_after_its_commit(bus: Bus) -> None:
    other = await bus.connect_db()
    async with bus.db.transaction() as tx:
        pid = await tx.fetchval("select pg_backend_pid()")
    async with other.transaction() as tx:
        last = await tx.fetchval("select query from pg_stat_activity where pid = $1", pid)

    assert last.startswith("COMMIT")


async def test_what_was_rolled_back_is_never_published(bus: Bus) -> None:
    topic = some_topic()
    async with relay(bus) as (db, _):
        with pytest.raises(ZeroDivisionError):
            await post_and_fail(db, topic)
        await post(db, topic, 2)

        assert await published(bus, topic, 1) == [2]
        await outbox_is_empty(bus)


async def test_what_a_dead_process_left_is_swept(bus: Bus) -> None:
    topic = some_topic()
    await post(bus.db, topic, 1, 2)
    await make_due(bus)
    async with relay(bus):
        assert await published(bus, topic, 2) == [1, 2]
        await outbox_is_empty(bus)


async def test_two_relays_share_what_was_left(bus: Bus) -> None:
    topics = [some_topic() for _ in range(3)]
    for n in range(500):
        await post(bus.db, topics[n % 3], n)
    await make_due(bus)
    async with relay(bus) as (_, one), relay(bus) as (_, two):
        await outbox_is_empty(bus)
        found = [n for topic in topics for n in await published(bus, topic, 166)]

    assert sorted(found) == list(range(500))
    assert one.sent + two.sent == 500


async def test_a_topic_that_takes_nothing_holds_up_no_other(bus: Bus) -> None:
    good, bad = some_topic(), f"test. no topic /{uuid.uuid4().hex}"
    async with relay(bus) as (db, _):
        async with db.transaction() as tx:
            tx.send(bad, "k", Note(n=1))
            tx.send(good, "k", Note(n=2))

        assert await published(bus, good, 1) == [2]
        # What no broker would ever take is not kept for ever.
        await outbox_is_empty(bus)


async def test_what_is_too_large_with_its_key_does_not_stop_the_others(bus: Bus) -> None:
    topic = some_topic()
    async with bus.db.transaction() as tx:
        tx.send(topic, "k" * 150_000, Note(n=1, text="x" * 900_000))
    await post(bus.db, topic, 2)
    await make_due(bus)
    async with relay(bus):
        assert await published(bus, topic, 1) == [2]
        await outbox_is_empty(bus)


async def test_ten_thousand_in_one_transaction(bus: Bus) -> None:
    topic = some_topic()
    async with relay(bus) as (db, one):
        await post(db, topic, *range(10_000))
        await one.drain(20)
        assert len(await bus.sql("select 1 from outbox")) == 0

        assert await published(bus, topic, 10_000) == list(range(10_000))


async def test_a_relay_that_ends_leaves_the_rest_to_others(bus: Bus) -> None:
    topic = some_topic()
    async with relay(bus) as (db, _):
        await post(db, topic, 1)
    await post(db, topic, 2)
    assert await bus.sql("select 1 from outbox")
    await make_due(bus)
    async with relay(bus):
        await outbox_is_empty(bus)

    assert set(await published(bus, topic, 2)) == {1, 2}


class FrozenKafka(Kafka):
    """Takes nothing until it is let."""

    def __init__(self) -> None:
        super().__init__(KafkaSettings(), "frozen")
        self.asked, self.thawed = asyncio.Event(), asyncio.Event()

    async def send_many(self, *_: object, **__: object) -> None:
        self.asked.set()
        await self.thawed.wait()


async def test_it_tells_of_a_topic_that_takes_nothing(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    db, kafka, topic = await bus.connect_db(), FrozenKafka(), some_topic()
    one = Relay(db, kafka)
    task = asyncio.create_task(one.run())
    await post(db, topic, 1)
    await kafka.asked.wait()
    assert one.trouble() == ""
    monkeypatch.setattr("wms.bus.relay.TROUBLE_AFTER_SECONDS", 0.0)
    assert one.trouble() == f"{topic} takes nothing for 0 s"
    kafka.thawed.set()
    await eventually(lambda: one.trouble() == "")
    task.cancel()
    await asyncio.wait([task])
