"""Where a log does not go on at the stored offset is seen and named; what was sent before a restore of the database is kept aside."""

from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete

from tests.contract.bus.instances import PARTITIONS, Bus, Keys, Note
from tests.waiting import eventually
from wms.bus.probe import new_probe
from wms.bus.reader import Reader
from wms.db import log_gap, offset
from wms.db.log_gap import LogGap
from wms.db.offset import ConsumedTopic
from wms.messages.wire import encode

on_apache = pytest.mark.parametrize(
    "cluster",
    [pytest.param("apache_kafka", id="apache", marks=[pytest.mark.kafka, pytest.mark.timeout(240)])],
    indirect=True,
)
"""The embedded broker deletes no records."""


async def delete_records(bus: Bus, partition: int, before: int) -> None:
    admin = AIOKafkaAdminClient(**bus.settings.connection())
    await admin.start()
    try:
        place = TopicPartition(bus.topic.name, partition)
        await admin.delete_records({place: RecordsToDelete(before_offset=before)})
    finally:
        await admin.close()


async def gaps(bus: Bus) -> list[Any]:
    async with bus.db.transaction() as tx:
        return await log_gap.page(tx)


async def send_to(bus: Bus, partition: int, payload: bytes) -> int:
    return await bus.kafka.append(bus.topic.name, partition, payload)


@on_apache
async def test_messages_deleted_before_they_were_read_are_named_and_the_rest_is_handled(bus: Bus) -> None:
    await send_to(bus, 1, encode(Note(n=1)))
    async with bus.instance():
        await bus.took_effect(1)
    for n in (2, 3, 4):
        await send_to(bus, 1, encode(Note(n=n)))
    await delete_records(bus, 1, 3)
    async with bus.instance():
        assert await bus.took_effect(2) == [1, 4]
    (gap,) = await gaps(bus)
    assert (gap["consumer"], gap["partition"], gap["cause"]) == ("test", 1, "deleted")
    assert (gap["first_offset"], gap["until_offset"]) == (1, 3)
    assert gap["handled_at"] < gap["goes_on_at"] <= gap["seen_at"]


@on_apache
async def test_a_log_of_which_all_was_deleted_is_seen_by_the_next_probe(bus: Bus) -> None:
    for n in (1, 2):
        await send_to(bus, 0, encode(Note(n=n)))
    await delete_records(bus, 0, 2)
    async with bus.instance() as one:
        await one.consumer.probe()
        await eventually(lambda: found(bus))
    (gap,) = await gaps(bus)
    assert (gap["first_offset"], gap["until_offset"], gap["cause"]) == (0, 2, "deleted")
    assert await bus.effects() == []


async def found(bus: Bus) -> bool:
    return len(await gaps(bus)) == 1


@on_apache
async def test_deletion_overtakes_a_consumer_that_runs(bus: Bus) -> None:
    async with bus.instance(batch=1) as one:
        one.hold.clear()
        await send_to(bus, 2, encode(Note(n=0)))
        await one.holding.wait()
        await one.stop()
        await send_to(bus, 2, encode(Note(n=1)))
        await send_to(bus, 2, encode(Note(n=2)))
        await delete_records(bus, 2, 2)
        await one.start()
        assert await bus.took_effect(2) == [0, 2]
    assert [(gap["first_offset"], gap["until_offset"]) for gap in await gaps(bus)] == [(1, 2)]


@on_apache
async def test_a_log_that_begins_again_is_named(bus: Bus) -> None:
    await send_to(bus, 3, encode(Note(n=1)))
    async with bus.instance():
        await bus.took_effect(1)
    await bus.sql("update consumer_offset set next_offset = 1000 where partition = 3")
    async with bus.instance():
        await bus.took_effect(2)
    (gap,) = await gaps(bus)
    assert (gap["cause"], gap["first_offset"], gap["until_offset"]) == ("begun anew", 1000, None)


async def test_without_a_gap_nothing_is_named(bus: Bus) -> None:
    await bus.send(range(50))
    async with bus.instance(batch=7, lanes=2):
        await bus.took_effect(50)
    async with bus.instance():
        await bus.send(range(50, 60))
        await bus.took_effect(60)
    assert await gaps(bus) == []


async def test_a_record_that_is_read_twice_is_no_gap_and_takes_effect_once(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = Reader.poll

    async def twice(self: Reader, *args: Any) -> Any:
        records = list(await poll(self, *args))
        return [*records, *records]

    monkeypatch.setattr(Reader, "poll", twice)
    await bus.send(range(20))
    async with bus.instance(batch=7):
        await bus.took_effect(20)
    assert sorted(await bus.effects()) == list(range(20))
    assert await gaps(bus) == []


async def restore(bus: Bus) -> None:
    """Have all that the log holds so far kept aside."""
    feed = ConsumedTopic(bus.kafka.cluster_id, "test", bus.topic.name)
    async with bus.db.transaction() as tx:
        firsts = await offset.begin(tx, feed, range(PARTITIONS))
        for partition in range(PARTITIONS):
            end = await send_to(bus, partition, new_probe())
            gap = LogGap(
                partition=partition, cause="restored", first_offset=firsts[partition], until_offset=end
            )
            if end > firsts[partition]:
                await log_gap.record(tx, feed, gap)


async def test_what_was_sent_before_a_restore_is_kept_aside_until_it_is_taken_in(bus: Bus) -> None:
    await bus.send(range(10))
    await restore(bus)
    await bus.send(range(100, 110))
    async with bus.instance(verified=True) as one:
        assert await bus.took_effect(10) == list(range(100, 110))
        await bus.caught_up()
        ids = [gap["log_gap_id"] for gap in await gaps(bus)]
        async with bus.db.transaction() as tx:
            kept = await log_gap.kept(tx, ids)
            assert len(kept) == 10
            assert {each["sender"] for each in kept} == {"ann"}
            assert await log_gap.acknowledge(tx, ids) == []
        await bus.sql("update dead_letter set replay_requested_at = now()")
        while await one.consumer.replay_one():
            pass
        assert await bus.effects() == [*range(10), *range(100, 110)]
        async with bus.db.transaction() as tx:
            assert sorted(await log_gap.acknowledge(tx, ids)) == sorted(ids)
    assert await gaps(bus) == []


async def test_a_token_that_has_expired_since_is_good_for_what_was_sent_with_it(bus: Bus, keys: Keys) -> None:
    await bus.send([1], token=keys.token(lifetime=60))
    await bus.send([2], token="forged")
    await restore(bus)
    async with bus.instance(verified=True) as one:
        one.consumer._handling._now = lambda: 4e9
        await bus.caught_up()
    senders = await bus.sql("select principal ->> 'owner' as owner, error from dead_letter order by owner")
    assert [row["owner"] for row in senders] == ["ann", None]
    assert "TOKEN_INVALID" in senders[1]["error"]
