"""Whoever reaches the broker may say what they like of task queues: matchers take it from services alone."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from services.matcher.index_sync import IndexSync
from services.matcher.queue_stats import QueueStatsWriter
from tests.contract.bus.instances import settings_for
from tests.services.world import NOTICES, World, ids
from tests.waiting import eventually
from wms.auth.orders import OrderKeys
from wms.auth.service_signatures import ServiceSignatures
from wms.bus.kafka import Kafka
from wms.bus.topics import find
from wms.embedded.kafka_broker import KafkaBroker
from wms.ids import JobId, TaskQueueId
from wms.matching.grouping import Requirements
from wms.messages.queue_changes import TOPIC, Entered, Left, RulesChanged
from wms.messages.wire import encode
from wms.queue_index.index import QueueIndex
from wms.runtime import clock

STRANGER = ServiceSignatures(OrderKeys([b"?" * 32]), clock.timestamp)
ELSE = Requirements(owner="eve", owner_group="g", vo="v", setup="default", cpu_segment=500)


def entered(tq_id: int, *job_ids: int) -> Entered:
    jobs = tuple(map(JobId, job_ids))
    return Entered(tq_id=TaskQueueId(tq_id), requirements=ELSE, user_priority=1.0, job_ids=jobs)


async def send(kafka: Kafka, payloads: Sequence[bytes]) -> None:
    await kafka.send_many(TOPIC, [b""] * len(payloads), payloads)


async def read(feed: IndexSync, index: QueueIndex, until: int) -> None:
    """Follow the changes until the queue of that number is known."""

    async def known() -> bool:
        for change in await feed.inbox.poll(0.1):
            await feed._apply_or_pass_over(change)
        return until in index

    await eventually(known)


async def test_forged_changes_change_nothing_and_are_counted(the_world: World, broker: KafkaBroker) -> None:
    waiting = await the_world.submitted(3)
    kafka = Kafka(settings_for(broker), "test")
    await kafka.start([find(TOPIC)])
    index = QueueIndex()
    feed = IndexSync(the_world.db, kafka, index, NOTICES)
    await feed.load()
    try:
        left = encode(Left(job_ids=tuple(waiting)))
        forged: list[bytes] = [encode(entered(10_000, 1, 2)), left, b"[1", b""]
        forged += [STRANGER.sign(TOPIC, each) for each in forged[:2]]
        forged.append(NOTICES.sign("wms.other", left))
        await send(kafka, forged)
        await send(kafka, [NOTICES.sign(TOPIC, encode(entered(20_000)))])
        await read(feed, index, 20_000)
        assert 10_000 not in index
        assert len(index) == len(waiting)
        assert feed.inbox.passed_over >= len(forged)
        # What a service sent is read once, however often somebody sends it again.
        said = NOTICES.sign(TOPIC, left)
        await send(kafka, [said, NOTICES.sign(TOPIC, encode(entered(20_001)))])
        await read(feed, index, 20_001)
        assert len(index) == 0
        await feed.reconcile()
        await send(kafka, [said, said, NOTICES.sign(TOPIC, encode(RulesChanged()))])
        await send(kafka, [NOTICES.sign(TOPIC, encode(entered(20_002)))])
        await read(feed, index, 20_002)
        assert len(index) == len(waiting)
    finally:
        await feed.inbox.close()
        await kafka.close()


async def test_a_queue_that_is_not_there_keeps_no_other_from_being_told_of(the_world: World) -> None:
    await the_world.submitted(2)
    await the_world.reconcile()
    the_world.index.add_queue(TaskQueueId(10_000), ELSE)
    the_world.index.add(TaskQueueId(10_000), 1.0, [JobId(99_999)])
    watch: QueueStatsWriter = the_world._watch
    await watch.write()
    assert [row["waiting"] for row in await the_world.sql("select waiting from queue_state")] == [2]


async def test_a_queue_that_cannot_be_indexed_keeps_no_other_from_being_matched(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bad,) = await the_world.submitted(1, cpu_time=50_000)
    (good,) = await the_world.submitted(1, cpu_time=60)
    add_queue = QueueIndex.add_queue

    def add_or_fail(self: QueueIndex, tq_id: Any, requirements: Requirements) -> None:
        if requirements.cpu_segment > 10_000:
            raise ValueError("a text of this queue")
        add_queue(self, tq_id, requirements)

    monkeypatch.setattr(QueueIndex, "add_queue", add_or_fail)
    await the_world.reconcile()
    assert ids(await the_world.match(slots=2)) == [good]
    monkeypatch.undo()
    await the_world.reconcile()
    assert ids(await the_world.match(slots=2)) == [bad]


async def test_nothing_waits_while_queues_with_long_requirements_are_learnt(the_world: World) -> None:
    turns = 0

    async def turning() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(turning())
    plain = Requirements(owner="a", owner_group="user", vo="local", setup="default", cpu_segment=500)
    long = {TaskQueueId(10_000 + n): plain for n in range(40)}
    await the_world._feed._know(long)
    task.cancel()
    assert turns >= len(long)
