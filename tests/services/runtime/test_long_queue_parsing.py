"""New queues whose requirements take long to parse: they are parsed once, beside the event loop, and nobody waits for them."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from services.job_manager.maintenance.wait_reasons import WaitReasons
from services.matcher.index_sync import IndexSync
from services.matcher.queue_parsing import QueueParsing
from tests.hostile.expensive import requirements as expensive
from tests.services.job_manager.queries.explained import advertise
from tests.services.world import NOTICES, World
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.time_slices import TimeSlices
from wms.classad import expression
from wms.classad.expression import Expression
from wms.ids import JobId, TaskQueueId
from wms.matching import conjuncts
from wms.matching.conjuncts import LONG
from wms.matching.grouping import Requirements
from wms.messages.queue_changes import Entered, Left
from wms.queue_index.index import QueueIndex
from wms.runtime.long_queue_parsing import LongQueueParsing

SECONDS = 60.0
"""More than any of this takes."""


class Matcher:
    """A feed that puts queues with long requirements off, and who prepares them."""

    def __init__(self, world: World) -> None:
        self.index = QueueIndex()
        self.long_queues = LongQueueParsing(TimeSlices())
        self.feed = IndexSync(world.db, Kafka(KafkaSettings(), "test"), self.index, NOTICES, self.long_queues)
        self.learning = QueueParsing(self.feed, self.long_queues)


def asked(n: int, owner: str = "mallory") -> Requirements:
    text = Expression.parse(expensive(n, 2_000)).text
    return Requirements(
        owner=owner, owner_group="user", vo="local", setup="default", cpu_segment=500, requirements=text
    )


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """The long texts that are parsed, and in which thread."""
    found: list[tuple[str, int]] = []

    def parse_expression(text: str, place: str = "") -> Any:
        if len(text) > LONG:
            found.append((text, threading.get_ident()))
        return parse(text, place)

    parse = expression.parse_expression  # type: ignore[attr-defined]
    monkeypatch.setattr(expression, "parse_expression", parse_expression)
    expression._parsed.cache_clear()
    yield found
    expression._parsed.cache_clear()


async def test_long_requirements_are_parsed_once_and_never_on_the_event_loop(
    the_world: World, parsed: list[tuple[str, int]]
) -> None:
    long = await the_world.submitted(2, requirements=expensive(1))
    (plain,) = await the_world.submitted(1)
    matcher = Matcher(the_world)
    parsed.clear()
    await matcher.feed.fill()
    assert [matcher.index.count(each) for each in matcher.index.queue_ids()] == [1]
    await matcher.feed.reconcile()  # it is put off once
    assert len(matcher.long_queues) == 1
    await matcher.learning.learn(SECONDS)
    assert len(matcher.index) == 3
    await matcher.feed.reconcile()
    assert len(matcher.index) == 3
    the_world._feed, the_world._matching._index = matcher.feed, matcher.index
    assert [each for each, _ in await the_world.match(slots=2)] == [plain]
    # To find nothing for a pilot, and to tell it so, parses nothing.
    assert await the_world.match(slots=2) == []
    assert len(parsed) == 1
    assert parsed[0][1] != threading.get_ident()
    assert set(long) == {job for tq_id in matcher.index.queue_ids() for job, _ in matcher.index.jobs(tq_id)}


async def test_who_comes_behind_a_crowd_of_expensive_queues_is_known_at_once(the_world: World) -> None:
    matcher = Matcher(the_world)
    for n in range(20):
        entered = Entered(
            tq_id=TaskQueueId(10_000 + n),
            requirements=asked(n),
            user_priority=1.0,
            job_ids=(JobId(10_000 + n),),
        )
        await matcher.feed._apply(entered)
    plain = Requirements(owner="a", owner_group="user", vo="local", setup="default", cpu_segment=500)
    await matcher.feed._apply(
        Entered(tq_id=TaskQueueId(1), requirements=plain, user_priority=1.0, job_ids=(JobId(1),))
    )
    assert len(matcher.index) == 1
    # Also who is as expensive waits for one of each other owner's, not for all.
    assert matcher.long_queues.put_if_long(TaskQueueId(2), asked(99, owner="alice"))
    order = []
    while matcher.long_queues:
        prepared = await matcher.long_queues.prepare_next()
        assert prepared is not None
        order.append(prepared.requirements.owner)
    assert "alice" in order[:2]
    assert len(order) == 21


async def test_jobs_that_left_while_their_queue_was_put_off_are_not_there(the_world: World) -> None:
    stays, leaves = await the_world.submitted(2, requirements=expensive(2, 2_000))
    matcher = Matcher(the_world)
    await matcher.feed.fill()
    await the_world.sql("update job set state = 'Held' where job_id = $1", leaves)
    await matcher.feed._apply(Left(job_ids=(leaves,)))
    await matcher.learning.learn(SECONDS)
    assert {job for tq_id in matcher.index.queue_ids() for job, _ in matcher.index.jobs(tq_id)} == {stays}


async def test_a_queue_whose_jobs_are_gone_is_not_prepared(the_world: World) -> None:
    (job,) = await the_world.submitted(1, requirements=expensive(3, 2_000))
    matcher = Matcher(the_world)
    await matcher.feed.fill()
    assert len(matcher.long_queues) == 1
    await the_world.sql("update job set state = 'Held' where job_id = $1", job)
    await matcher.feed.reconcile()
    assert len(matcher.long_queues) == 0


async def test_a_newcomer_that_cannot_be_parsed_keeps_no_other_from_being_matched(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = asked(4), asked(5)
    parse = expression.parse_expression  # type: ignore[attr-defined]

    def parse_or_fail(text: str, place: str = "") -> Any:
        if text == bad.requirements:
            raise RecursionError("a text of this queue")
        return parse(text, place)

    monkeypatch.setattr(expression, "parse_expression", parse_or_fail)
    expression._parsed.cache_clear()
    matcher = Matcher(the_world)
    await matcher.feed._know({TaskQueueId(1): bad, TaskQueueId(2): good})
    await matcher.learning.learn(SECONDS)
    assert list(matcher.index.queue_ids()) == [2]


async def test_why_long_requirements_keep_jobs_waiting_is_looked_at_beside_the_event_loop(
    the_world: World, parsed: list[tuple[str, int]]
) -> None:
    (job,) = await the_world.submitted(1, requirements=expensive(6))
    await advertise(the_world)
    the_world._reasons = WaitReasons(the_world.db, LongQueueParsing(TimeSlices()))
    await the_world.watch()
    conjuncts._parsed.clear()  # what the matcher has parsed is in another process
    parsed.clear()
    await the_world.look()
    assert await told_of(the_world, job) == []
    await the_world.look()
    assert await told_of(the_world, job) == ["NEVER_POSSIBLE"]
    assert len(parsed) == 1
    assert parsed[0][1] != threading.get_ident()


async def told_of(world: World, job_id: int) -> list[str]:
    rows = await world.sql("select code from wait_reason join job using (tq_id) where job_id = $1", job_id)
    return [row["code"] for row in rows]
