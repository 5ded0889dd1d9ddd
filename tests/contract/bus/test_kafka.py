"""Producing and reading, the same on both brokers."""

import asyncio
import contextlib
import os
import signal
import uuid
from collections import defaultdict

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.record.util import calc_crc32c

from tests.contract.bus.instances import PARTITIONS, Bus
from tests.waiting import eventually
from wms.bus.kafka import Kafka, KafkaSettings, Message
from wms.embedded.process import free_port
from wms.errors import Rejected, Unavailable


async def test_topics_that_exist_stay_as_they_are(bus: Bus) -> None:
    await bus.send([1])
    one, two = await bus.connect(), await bus.connect()
    await asyncio.gather(one.ensure([bus.topic]), two.ensure([bus.topic]), two.start([bus.topic]))

    assert len(await bus.read_all(bus.topic.name, PARTITIONS, 1)) == 1


async def test_all_connections_see_the_same_cluster(bus: Bus) -> None:
    other = await bus.connect()

    assert other.cluster_id == bus.kafka.cluster_id != ""
    assert await other.read_cluster_id() == other.cluster_id


async def test_ten_thousand_messages_at_once(bus: Bus) -> None:
    keys = [b"key-%d" % (n % 100) for n in range(10_000)]
    payloads = [b"%d" % n for n in range(10_000)]
    await bus.kafka.send_many(bus.topic.name, keys, payloads)

    found = await bus.read_all(bus.topic.name, PARTITIONS, 10_000)

    assert sorted(int(each.payload) for each in found) == list(range(10_000))
    partition_of = {each.key: each.partition for each in found}
    assert set(partition_of.values()) == set(range(PARTITIONS))
    assert all(partition_of[each.key] == each.partition for each in found)
    by_key: dict[bytes | None, list[int]] = defaultdict(list)
    for each in found:
        by_key[each.key].append(int(each.payload))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


async def test_a_broker_that_stands_still_for_a_while_keeps_none_of_many_senders_from_their_turn(
    bus: Bus,
) -> None:
    await bus.kafka.send(bus.topic.name, "k", b"first")
    pid = bus.server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    asyncio.get_running_loop().call_later(1.5, os.kill, pid, signal.SIGCONT)
    await asyncio.gather(*(bus.kafka.send(bus.topic.name, "k", b"%d" % n) for n in range(40)))

    found = await bus.read_all(bus.topic.name, PARTITIONS, 41)

    assert [each.payload for each in found] == [b"first", *(b"%d" % n for n in range(40))]


async def test_what_comes_while_little_is_handled_comes_together(bus: Bus) -> None:
    reader = await bus.kafka.reader(bus.topic.name)
    reader.assign(dict.fromkeys(range(PARTITIONS), 0))
    await bus.kafka.send(bus.topic.name, "k", b"0")
    handled = await reader.poll(20.0, 5_000)
    for n in range(1, 6):
        await bus.kafka.send(bus.topic.name, f"k{n}", b"%d" % n)
    together = await reader.poll(20.0, 5_000)
    await reader.close()

    assert [each.payload for each in handled] == [b"0"]
    assert sorted(each.payload for each in together) == [b"%d" % n for n in range(1, 6)]


async def test_a_token_travels_beside_the_payload(bus: Bus) -> None:
    await bus.kafka.send(bus.topic.name, "k", b"payload", "the.token.itself")
    await bus.kafka.send(bus.topic.name, "k", b"payload")

    first, second = await bus.read_all(bus.topic.name, PARTITIONS, 2)

    assert (first.token, first.payload, first.key) == ("the.token.itself", b"payload", b"k")
    assert second.token == ""


async def test_a_topic_that_nobody_made_is_made_by_the_first_message(bus: Bus) -> None:
    name = f"test.inbox.{uuid.uuid4().hex}"
    await bus.kafka.send(name, "anybody", b"1")

    (message,) = await bus.read_all(name, 1, 1)

    assert message.partition == 0


async def test_a_name_that_no_topic_can_have_is_rejected_or_taken_but_never_waited_for(bus: Bus) -> None:
    with contextlib.suppress(Rejected):
        await bus.kafka.send("no topic/has such a name", "k", b"1")
    await bus.send([1])


async def test_too_large_a_message_is_rejected_and_the_next_one_goes(bus: Bus) -> None:
    with pytest.raises(Rejected) as caught:
        await bus.kafka.send(bus.topic.name, "k", b"x" * 1_100_000)
    await bus.kafka.send(bus.topic.name, "k", b"x" * 950_000)

    assert caught.value.code == "MESSAGE_TOO_LARGE"
    assert [len(each.payload) for each in await bus.read_all(bus.topic.name, PARTITIONS, 1)] == [950_000]


async def test_reading_again_begins_where_it_is_told(bus: Bus) -> None:
    await bus.kafka.send_many(bus.topic.name, [b"same"] * 10, [b"%d" % n for n in range(10)])
    partition = (await bus.read_all(bus.topic.name, PARTITIONS, 10))[0].partition
    reader = await bus.kafka.reader(bus.topic.name)
    try:
        reader.assign({partition: 0})
        first = await read(reader, 3)
        rest_of_buffer = await read(reader, 1)
        reader.assign({partition: 2})
        again = await read(reader, 8)
    finally:
        await reader.close()

    assert [each.payload for each in first] == [b"0", b"1", b"2"]
    assert rest_of_buffer[0].payload == b"3"
    assert [int(each.payload) for each in again] == list(range(2, 10))


async def read(reader: object, count: int) -> list[Message]:
    found: list[Message] = []

    async def enough() -> bool:
        found.extend(await reader.poll(0.2, count - len(found)))  # type: ignore[attr-defined]
        return len(found) >= count

    await eventually(enough)
    return found


async def test_a_reader_knows_what_it_has_not_read(bus: Bus) -> None:
    await bus.kafka.send_many(bus.topic.name, [b"same"] * 10, [b"%d" % n for n in range(10)])
    reader = await bus.kafka.reader(bus.topic.name)
    try:
        assert await reader.unread() == 0
        assert reader.answered_at() == 0
        reader.assign(dict.fromkeys(range(PARTITIONS), 0))
        assert len(await read(reader, 4)) == 4
        assert await reader.unread() == 6
        assert len(await read(reader, 6)) == 6
        assert await reader.unread() == 0

        async def heard() -> int:
            await reader.poll(0.1, 1)
            return reader.answered_at()

        before = await eventually(heard)

        async def heard_again() -> bool:
            return await heard() > before

        await eventually(heard_again)
    finally:
        await reader.close()


async def raw_producer(bus: Bus, **options: object) -> AIOKafkaProducer:
    producer = AIOKafkaProducer(bootstrap_servers=bus.server.bootstrap, **options)
    await producer.start()
    return producer


async def test_messages_of_strange_producers_are_read(bus: Bus) -> None:
    name = bus.topic.name
    for codec in ("gzip", "lz4", "zstd", "snappy"):
        producer = await raw_producer(bus, compression_type=codec)
        await producer.send_and_wait(name, codec.encode() * 100, partition=0)
        await producer.stop()
    producer = await raw_producer(bus)
    await producer.send_and_wait(name, None, key=b"only a key", partition=0)
    await producer.send_and_wait(name, b"v", partition=0, headers=[("authorization", None)])
    await producer.send_and_wait(name, b"v", partition=0, headers=[("authorization", b"\xff" * 20_000)])
    await producer.send_and_wait(
        name, b"v", partition=0, headers=[("x", b"1"), ("authorization", b"Bearer t")]
    )
    await producer.stop()

    found = await bus.read_all(name, PARTITIONS, 8)

    assert [each.payload for each in found[4:]] == [b"", b"v", b"v", b"v"]
    assert [found[5].token, found[7].token] == ["", "t"]
    assert len(found[6].token) == 16_384


async def test_a_record_that_is_none_is_passed_over(bus: Bus) -> None:
    await bus.kafka.send_many(bus.topic.name, [b"same"] * 5, [b"%d" % n for n in range(5)])
    partition = (await bus.read_all(bus.topic.name, PARTITIONS, 5))[0].partition
    producer = await raw_producer(bus)
    await send_with_junk_in_its_header(producer, bus.topic.name, partition)
    await producer.stop()
    await bus.kafka.send_many(bus.topic.name, [b"same"] * 5, [b"%d" % n for n in range(5, 10)])

    found = await bus.read_all(bus.topic.name, PARTITIONS, 10)

    assert [int(each.payload) for each in found if each.payload.isdigit()] == list(range(10))


async def send_with_junk_in_its_header(producer: AIOKafkaProducer, topic: str, partition: int) -> None:
    """Send a record whose header's name is no UTF-8, between two that are sound, in one batch."""
    batch = producer.create_batch()
    for name in ("sound", "rotten", "sound"):
        assert batch.append(key=None, value=b"batch", timestamp=None, headers=[(name, b"1")]) is not None
    batch.close()
    body = bytearray(bytes(batch._build()).replace(b"rotten", b"\xff\xfe\xfd\xfc\xfb\xfa"))
    # Of a record batch, version 2, bytes 17 to 20 hold the checksum of all that follows.
    body[17:21] = calc_crc32c(bytes(body[21:])).to_bytes(4, "big")
    batch._buffer = body
    await (await producer.send_batch(batch, topic, partition=partition))


async def test_no_broker_is_said_so() -> None:
    kafka = Kafka(KafkaSettings(bootstrap=f"127.0.0.1:{free_port()}"), "test")
    with pytest.raises(Unavailable):
        await kafka.start([])
    with pytest.raises(Unavailable):
        await kafka.send("any", "k", b"1")
    with pytest.raises(Unavailable):
        await kafka.reader("any")
    with pytest.raises(Unavailable):
        await kafka.read_cluster_id()
    await kafka.close()


async def test_the_end_of_a_long_log_is_read(bus: Bus) -> None:
    """The embedded broker searches a log batch by batch, for no longer than the fetch may wait."""
    batches = 4_000
    for first in range(0, batches, 20):
        sending = [bus.kafka.send(bus.topic.name, "k", b"%d" % n) for n in range(first, first + 20)]
        await asyncio.gather(*sending)
    reader = await bus.kafka.reader(bus.topic.name)
    try:
        reader.assign(dict.fromkeys(range(PARTITIONS), 0))
        assert {int(each.payload) for each in await read(reader, batches)} == set(range(batches))
        await bus.kafka.send(bus.topic.name, "k", b"last")

        assert [each.payload for each in await read(reader, 1)] == [b"last"]
    finally:
        await reader.close()
