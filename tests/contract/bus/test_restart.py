"""Brokers and services die under load: what is in Postgres is never lost, and all goes on without a hand."""

import asyncio
import contextlib
import signal
import time
from pathlib import Path

import msgspec
import pytest

from tests.contract.bus.instances import Bus, Keys, Note
from tests.services.runtime.counting import Counting
from tests.services.runtime.counting_service import PASSED_ON, Number
from tests.waiting import eventually
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.topics import Topic
from wms.embedded.apache_kafka import ApacheKafka
from wms.embedded.kafka_broker import KafkaBroker
from wms.embedded.process import Child
from wms.errors import Unavailable
from wms.messages.wire import encode

UNAVAILABLE = 75


TOO_LONG_SECONDS = 55.0


async def owns_all_alone(counting: Counting, child: Child) -> bool:
    rows = await counting.sql("select pid from service_instance")
    return [row["pid"] for row in rows] == [child.pid]


async def test_the_embedded_broker_is_killed_under_a_service(tmp_path: Path, database: str) -> None:
    """The service notices that it is another cluster and ends; its supervisor (here: the test) starts it again."""
    async with (
        KafkaBroker(tmp_path / "broker") as broker,
        Counting(tmp_path, database, broker, idempotent=False).open() as counting,
    ):
        child = await counting.start()
        await counting.tell(range(100))
        await counting.took_effect(range(100))
        await broker.kill()
        # What is posted now waits in the outbox.
        await counting.sql(
            "insert into outbox (topic, keys, payloads, due_at) values ($1, $2, $3, now())",
            PASSED_ON.name,
            [b"k"],
            [encode(Number(n=1_000))],
        )
        await counting.hang_up()
        await broker.start()
        assert await child.wait() == UNAVAILABLE
        await counting.start()
        await counting.tell(range(50, 200))
        # What came before the broker's end has had its effect, what comes again from it has it again.
        assert await counting.took_effect(range(200)) == sorted([*range(100), *range(50, 200)])
        await counting.outbox_is_empty()

        async def all_passed_on() -> bool:
            return set(await counting.passed_on()) >= {1_000, *range(50, 200)}

        # A busy embedded broker may tell a reader an end that is before the last message.
        await eventually(all_passed_on)
        clusters = await counting.sql("select count(distinct cluster_id) as n from consumer_offset")
        assert clusters[0]["n"] == 2


async def test_a_reader_without_a_broker_closes_and_nobody_else_is_cancelled(tmp_path: Path) -> None:
    async with KafkaBroker(tmp_path / "broker") as broker:
        kafka = Kafka(KafkaSettings(bootstrap=broker.bootstrap, idempotent=False, fetch_wait_ms=0), "test")
        topic = Topic("test.readers", 1, 1)
        await kafka.start([topic])
        readers = [await kafka.reader(topic.name) for _ in range(10)]
        for reader in readers:
            reader.assign({0: 0})
            await reader.poll(0.05, 1)
        await broker.kill()
        # Most of the time one whose broker is gone sleeps between two attempts: there the library lets its own
        # cancellation out.
        polled = await asyncio.gather(*(reader.poll(0.3, 1) for reader in readers))
        closing = [asyncio.create_task(reader.close()) for reader in readers]
        await asyncio.wait(closing)
        await kafka.close()

    assert polled == [[]] * 10
    assert not any(task.cancelled() or task.exception() for task in closing)


async def test_a_killed_service_is_taken_over_at_once_by_its_successor(
    broker: KafkaBroker, tmp_path: Path, database: str
) -> None:
    async with Counting(tmp_path, database, broker, idempotent=False).open() as counting:
        child = await counting.start()
        await counting.tell(range(50))
        await counting.took_effect(range(50))
        child.send(signal.SIGKILL)
        assert await child.wait() == -signal.SIGKILL
        child = await counting.start()
        await eventually(lambda: owns_all_alone(counting, child), 60)
        await counting.tell(range(50, 100))

        assert set(await counting.took_effect(range(50, 100))) >= set(range(100))


async def test_a_service_that_is_asked_to_end_ends_well(
    broker: KafkaBroker, tmp_path: Path, database: str
) -> None:
    async with Counting(tmp_path, database, broker, idempotent=False).open() as counting:
        child, other = await counting.start(), await counting.start()
        await eventually(lambda: both_beat(counting), 60)
        await counting.tell(range(300))
        child.send(signal.SIGTERM)
        assert await child.wait() == 0
        await counting.took_effect(range(300))
        assert await owns_all_alone(counting, other)
        other.send(signal.SIGTERM)
        assert await other.wait() == 0
        await counting.outbox_is_empty()

        assert await counting.sql("select * from service_instance") == []
        assert set(await counting.passed_on()) >= set(range(300))


async def both_beat(counting: Counting) -> bool:
    return len(await counting.sql("select 1 from service_instance")) == 2


@pytest.mark.kafka
@pytest.mark.timeout(240)
async def test_apache_kafka_is_killed_under_all(
    apache_kafka: ApacheKafka, database: str, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its log and its name: no service ends, all go on by themselves, and nothing happens twice."""
    monkeypatch.setattr("wms.bus.kafka.SEND_SECONDS", 3.0)
    bus = Bus(apache_kafka, database, keys)
    counting = Counting(tmp_path, database, apache_kafka, idempotent=True)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(bus.close)
        await stack.enter_async_context(counting.open())
        bus.kafka, bus.db = await bus.connect(), await bus.connect_db()
        child = await counting.start()
        await counting.tell(range(100))
        await counting.took_effect(range(100))
        async with bus.instance(outgoing=bus.topic.name + ".out") as one:
            await bus.send(range(1_000, 1_100))
            await counting.took_effect(range(1_000, 1_100))
            gone_at = time.monotonic()
            await apache_kafka.kill()
            # A message under way is given up, and leaves a gap in the producer's numbers.
            with pytest.raises(Unavailable):
                await bus.send([1])
            async with one.db.transaction() as tx:
                tx.send(bus.topic.name + ".out", "k", Note(n=2_000))
            await apache_kafka.start()
            if time.monotonic() - gone_at > TOO_LONG_SECONDS:
                # On a machine this slow it has given up, as it should; its supervisor starts it again.
                assert await child.wait() == UNAVAILABLE
                child = await counting.start()
            monkeypatch.undo()
            await bus.send(range(1_100, 1_200))
            await counting.tell(range(100, 200))
            await counting.took_effect([*range(200), *range(1_000, 1_200)])

            async def all_is_told() -> bool:
                # What was given up may have arrived all the same, and anything twice.
                told = await bus.read_all(bus.topic.name + ".out", 1, 201)
                return {msgspec.json.decode(each.payload)["n"] for each in told} >= {
                    2_000,
                    *range(1_000, 1_200),
                }

            await eventually(all_is_told)
        assert child.running

        effects = await counting.effects()
        assert [n for n in effects if n >= 1_000] == list(range(1_000, 1_200))
        assert set(await counting.passed_on()) >= set(range(200))
