"""The feed of events: the newest records, read once for all."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from services.gateway import event_feed
from services.gateway.event_feed import EventFeed
from services.gateway.event_record import EventRecord
from tests.system.place import Place
from tests.waiting import eventually
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.topics import find
from wms.messages.events import TOPIC

RECORD = b'{"type":"element-state","site":"cern","ce":"","at":"2026-01-01T00:00:00Z","event":"ban","state":"banned"}'

QUEUED = b'{"type":"jobs-queued","first":1,"count":1,"at":"2026-01-01T00:00:00Z","owner":"alice","owner_group":"g","vo":"v"}'


@pytest_asyncio.fixture(loop_scope="session")
async def kafka(place: Place) -> AsyncIterator[Kafka]:
    kafka = Kafka(KafkaSettings(bootstrap=place.broker.bootstrap, fetch_wait_ms=0, idempotent=False), "test")
    await kafka.start([find(TOPIC)])
    yield kafka
    await kafka.close()


async def running(feed: EventFeed) -> asyncio.Task[None]:
    task = asyncio.create_task(feed.run())
    await feed.end()
    return task


async def test_what_comes_is_kept_and_given_to_those_who_follow(kafka: Kafka) -> None:
    feed = EventFeed(kafka, find(TOPIC))
    task = await running(feed)
    place = await feed.end()
    with feed.followers.following("alice") as alice, feed.followers.following("bob") as bob:
        await kafka.send(TOPIC, "x", QUEUED)
        await alice.wait(60)
        ((given, at),) = alice.take()
        assert (at, list(bob.take())) == (feed.place(), [])
    (record,) = feed.after(place)
    assert record is given
    assert record.offset == place.offsets[record.partition]
    assert feed.after(place.past(record.partition, record.offset)) == []
    task.cancel()
    await asyncio.wait([task])


async def test_a_new_feed_knows_what_came_before_it(kafka: Kafka) -> None:
    first = EventFeed(kafka, find(TOPIC))
    task = await running(first)
    place = await first.end()
    await kafka.send_many(TOPIC, [b"a", b"b", b"c"], [RECORD] * 3)
    await eventually(lambda: len(first.after(place)) == 3)
    second = EventFeed(kafka, find(TOPIC))
    other = await running(second)
    assert second.covers(place)
    assert second.after(place) == first.after(place)
    for each in (task, other):
        each.cancel()
        await asyncio.wait([each])


async def test_a_record_that_cannot_be_read_is_passed(kafka: Kafka) -> None:
    feed = EventFeed(kafka, find(TOPIC))
    task = await running(feed)
    place = await feed.end()
    await kafka.send(TOPIC, "x", b"no json")
    await eventually(lambda: feed.after(place))
    assert [each.fact for each in feed.after(place)] == [None]
    task.cancel()
    await asyncio.wait([task])


async def test_a_place_that_another_gateway_has_reached_is_waited_for(kafka: Kafka) -> None:
    feed = EventFeed(kafka, find(TOPIC))
    task = await running(feed)
    place = await feed.end()
    ahead = place.past(0, place.offsets[0])
    assert await feed.reached(ahead, 0.0) == place
    reaching = asyncio.create_task(feed.reached(ahead, 60))
    await kafka.send_many(TOPIC, [b"%d" % n for n in range(20)], [RECORD] * 20)
    assert ahead.is_before(await reaching)
    task.cancel()
    await asyncio.wait([task])


def test_only_the_newest_are_kept() -> None:
    kept = event_feed._Partition()
    for n in range(event_feed.KEPT + 10):
        kept.keep(EventRecord(0, n, 1, None))
    assert (kept.first, kept.following) == (10, event_feed.KEPT + 10)
    assert [each.offset for each in kept.since(event_feed.KEPT + 8)] == [
        event_feed.KEPT + 8,
        event_feed.KEPT + 9,
    ]


def test_after_a_gap_what_was_before_is_forgotten() -> None:
    kept = event_feed._Partition()
    for n in (0, 1, 7):
        kept.keep(EventRecord(0, n, 1, None))
    assert (kept.first, kept.following, [each.offset for each in kept.since(0)]) == (7, 8, [7])
