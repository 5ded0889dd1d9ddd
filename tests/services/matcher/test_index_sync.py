"""Whoever reaches the broker may say what they like of task queues: matchers take it from services alone."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from services.matcher import index_sync
from services.matcher.index_sync import PART, IndexSync
from services.matcher.queue_stats import QueueStatsWriter
from tests.contract.bus.instances import settings_for
from tests.hostile.expensive import requirements as expensive
from tests.services.world import NOTICES, World, ids
from tests.waiting import eventually
from wms.auth.orders import OrderKeys
from wms.auth.service_signatures import ServiceSignatures
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.topics import find
from wms.classad import expression
from wms.classad.expression import Expression
from wms.db import job
from wms.db.database import Transaction
from wms.embedded.kafka_broker import KafkaBroker
from wms.ids import JobId, TaskQueueId
from wms.matching.grouping import Requirements
from wms.messages import replies
from wms.messages.queue_changes import TOPIC, Entered, Left, RulesChanged
from wms.messages.wire import encode
from wms.queue_index.index import QueueIndex
from wms.runtime import clock

STRANGER = ServiceSignatures(OrderKeys([b"?" * 32]), clock.timestamp)
QUEUES = 20
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


async def test_jobs_enter_after_the_rules_that_were_changed_before_them_apply(
    the_world: World, broker: KafkaBroker
) -> None:
    kafka = Kafka(settings_for(broker), "test")
    await kafka.start([find(TOPIC)])
    index = QueueIndex()
    feed = IndexSync(the_world.db, kafka, index, NOTICES)
    known_at_change: list[bool] = []

    async def apply() -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        known_at_change.append(30_000 in index)

    feed.on_rules_changed = apply
    await feed.load()
    try:
        await send(kafka, [NOTICES.sign(TOPIC, encode(each)) for each in (RulesChanged(), entered(30_000))])
        await read(feed, index, 30_000)
        assert known_at_change == [False]
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


LONGEST = 16_384
"""So many characters requirements had at most in earlier versions."""


async def test_a_job_of_an_earlier_version_with_longer_requirements_is_matched(the_world: World) -> None:
    first = 'other.Site == "A"'
    (long,) = await the_world.submitted(1, requirements=first)
    text = f"{first} && ({expensive(1, LONGEST - 200)} || true)"
    await the_world.sql(
        "update task_queue set requirements = jsonb_set(requirements::jsonb, '{requirements}', to_jsonb($1::text))",
        Expression.parse(text).text,
    )
    await the_world.reconcile()
    (tq_id,) = the_world.index.queue_ids()
    assert len(the_world.index.requirements(tq_id).requirements) > LONGEST // 2
    assert [each for each, _ in await the_world.match(site="A")] == [long]


async def test_a_reconciliation_of_many_jobs_gives_the_loop_back(the_world: World) -> None:
    kept = await the_world.submitted(1)
    await the_world.submitted(2 * PART)
    found = [0]

    async def look() -> None:
        while True:
            found.append(len(the_world.index))
            await asyncio.sleep(0)

    task = asyncio.create_task(look())
    await the_world.reconcile()
    await the_world.sql("update job set state = 'Done', rare_state = 'Done' where job_id > $1", kept[0])
    await the_world.reconcile()
    await asyncio.sleep(0)
    task.cancel()
    assert max(found) == 2 * PART + 1
    assert len(the_world.index) == 1
    assert max(abs(later - earlier) for earlier, later in pairwise(found)) == PART


async def test_a_reconciliation_obeys_what_changes_while_it_goes_on(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, entered_again, entered_new = await the_world.submitted(3)
    await the_world.reconcile()
    (tq_id,) = the_world.index.queue_ids()
    the_world.index.discard(left, entered_new)
    await the_world.sql("update job set state = 'Done', rare_state = 'Done' where job_id = $1", entered_again)
    read = job.waiting_in

    async def read_and_change(tx: Transaction, tq_ids: Sequence[TaskQueueId]) -> Any:
        found = await read(tx, tq_ids)
        await the_world.sql("update job set state = 'Done', rare_state = 'Done' where job_id = $1", left)
        await the_world.sql(
            "update job set state = 'Waiting', rare_state = null where job_id = $1", entered_again
        )
        return found

    monkeypatch.setattr(job, "waiting_in", read_and_change)
    await the_world.reconcile()
    assert sorted(each for each, _ in the_world.index.jobs(tq_id)) == [entered_again, entered_new]


async def test_many_queues_are_compared_a_part_at_a_time(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_sync, "QUEUES", 2)
    jobs = await the_world.submit(*[{"executable": "x", "tags": [f"t{n}"]} for n in range(5)])
    assert isinstance(jobs, replies.Submitted)
    read, parts = job.waiting_in, list[int]()

    async def counted(tx: Transaction, tq_ids: Sequence[TaskQueueId]) -> Any:
        parts.append(len(tq_ids))
        return await read(tx, tq_ids)

    monkeypatch.setattr(job, "waiting_in", counted)
    await the_world.reconcile()
    assert (parts, len(the_world.index)) == ([2, 2, 1], 5)
    await the_world.sql("update job set state = 'Done', rare_state = 'Done'")
    await the_world.reconcile()
    assert (parts, [*the_world.index.queue_ids()]) == ([2, 2, 1] * 2, [])


async def test_other_work_is_done_between_two_new_queues(the_world: World) -> None:
    index = QueueIndex()
    feed = IndexSync(the_world.db, Kafka(KafkaSettings(), "test"), index, NOTICES)
    found: list[int] = []

    async def look() -> None:
        while len(found) < QUEUES:
            found.append(len(list(index.queue_ids())))
            await asyncio.sleep(0)

    required = {
        TaskQueueId(n): msgspec.structs.replace(ELSE, requirements=Expression.parse(expensive(n)).text)
        for n in range(QUEUES)
    }
    await asyncio.gather(feed._know(required), look())
    assert max(later - earlier for earlier, later in pairwise(found)) == 1


async def test_a_queue_that_cannot_be_parsed_keeps_no_other_from_the_index(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Expression.parse(expensive(4)).text
    parse = expression.parse_expression  # type: ignore[attr-defined]

    def parse_or_fail(text: str, place: str = "") -> Any:
        if text == bad:
            raise RecursionError("a text of this queue")
        return parse(text, place)

    expression._parsed_long.cache_clear()
    monkeypatch.setattr(expression, "parse_expression", parse_or_fail)
    index = QueueIndex()
    feed = IndexSync(the_world.db, Kafka(KafkaSettings(), "test"), index, NOTICES)
    await feed._know({TaskQueueId(1): msgspec.structs.replace(ELSE, requirements=bad), TaskQueueId(2): ELSE})
    assert list(index.queue_ids()) == [2]
