"""How queues do, as one matcher at a time writes it down; matches of all matchers fade."""

from math import e

import pytest

from tests.unit.matching.strategies import asks
from wms.db import queue_stats, task_queue
from wms.db.database import Transaction
from wms.db.queue_stats import FADING_SECONDS, SILENT_SECONDS, QueueDepth, QueueState
from wms.ids import TaskQueueId
from wms.matching.grouping import key
from wms.matching.queue_stats import Level

LEVELS = (
    Level(user_priority=1.0, count=3, oldest=5, newest=9),
    Level(user_priority=2.5, count=1, oldest=7, newest=7),
)


async def queues(tx: Transaction, count: int) -> list[TaskQueueId]:
    wanted = [asks(owner=f"o{n}") for n in range(count)]
    found = await task_queue.find_or_make(tx, {key(each): each for each in wanted})
    return [found[key(each)] for each in wanted]


def state(tq_id: TaskQueueId, waiting: int = 4, weight: float = 2.0) -> QueueState:
    return QueueState(tq_id=tq_id, waiting=waiting, weight=weight, levels=LEVELS)


async def watched(tx: Transaction, count: int = 1) -> list[TaskQueueId]:
    assert await queue_stats.watch(tx, "m1", "dirac")
    return await queues(tx, count)


async def silence(tx: Transaction) -> None:
    await tx.execute("update queue_watch set at = now() - make_interval(secs => $1)", SILENT_SECONDS + 1)


async def test_one_matcher_watches_until_it_falls_silent(tx: Transaction) -> None:
    assert not await queue_stats.is_watched(tx)
    assert await queue_stats.watch(tx, "m1", "dirac")
    assert not await queue_stats.watch(tx, "m2", "dirac")
    assert await queue_stats.watch(tx, "m1", "dirac"), "it goes on"
    await silence(tx)
    assert not await queue_stats.is_watched(tx)
    assert await queue_stats.watch(tx, "m2", "proportional")
    assert not await queue_stats.watch(tx, "m1", "dirac")
    assert await queue_stats.is_watched(tx)


async def test_what_is_written_is_read_while_somebody_watches(tx: Transaction) -> None:
    (one,) = await watched(tx)
    await queue_stats.write(tx, [state(one)])
    found = await queue_stats.read(tx, one)
    assert found is not None
    assert (found.waiting, found.weight, found.levels, found.law) == (4, 2.0, LEVELS, "dirac")
    assert (await queue_stats.waiting(tx)) == {one: QueueDepth(4, 2.0)}
    await silence(tx)
    assert await queue_stats.read(tx, one) is None
    assert await queue_stats.waiting(tx) is None


async def test_queues_that_are_gone_are_not_written(tx: Transaction) -> None:
    (one,) = await watched(tx)
    await queue_stats.write(tx, [state(TaskQueueId(10**6)), state(one, waiting=0)])
    assert await queue_stats.waiting(tx) == {}, "and nothing waits in the other"
    await queue_stats.write(tx, [state(one, waiting=2)])
    assert await queue_stats.waiting(tx) == {one: QueueDepth(2, 2.0)}
    await queue_stats.write(tx, [])


async def test_queues_are_forgotten_by_name_or_all_but_some(tx: Transaction) -> None:
    one, two, three = await watched(tx, 3)
    await queue_stats.write(tx, map(state, (three, one, two)))
    await queue_stats.forget(tx, [two])
    assert set(await queue_stats.waiting(tx) or {}) == {one, three}
    await queue_stats.keep_only(tx, [three])
    assert set(await queue_stats.waiting(tx) or {}) == {three}
    await queue_stats.forget(tx, [])


async def test_matches_add_up_and_fade(tx: Transaction) -> None:
    (one,) = await watched(tx)
    await queue_stats.write(tx, [state(one)])
    await queue_stats.serve(tx, {one: 10})
    await queue_stats.serve(tx, {one: 5})
    await queue_stats.serve(tx, {})
    found = await queue_stats.read(tx, one)
    assert found is not None
    assert found.served.faded_count == pytest.approx(15)
    await tx.execute("update queue_served set at = at - make_interval(secs => $1)", FADING_SECONDS)
    found = await queue_stats.read(tx, one)
    assert found is not None
    assert found.served.faded_count == pytest.approx(15 / e)
    await queue_stats.serve(tx, {one: 1})
    found = await queue_stats.read(tx, one)
    assert found is not None
    assert found.served.faded_count == pytest.approx(15 / e + 1)


async def test_a_count_of_years_ago_is_nothing_and_no_error(tx: Transaction) -> None:
    (one,) = await watched(tx)
    await queue_stats.write(tx, [state(one)])
    await queue_stats.serve(tx, {one: 10})
    await tx.execute("update queue_served set at = '2001-01-01'")
    await queue_stats.serve(tx, {one: 2})
    found = await queue_stats.read(tx, one)
    assert found is not None
    assert found.served.faded_count == pytest.approx(2)


async def test_how_long_a_queue_was_watched_counts_from_its_first_word(tx: Transaction) -> None:
    (one,) = await watched(tx)
    await queue_stats.write(tx, [state(one)])
    await tx.execute("update queue_state set since = now() - interval '90 s'")
    await queue_stats.write(tx, [state(one, waiting=1)])
    found = await queue_stats.read(tx, one)
    assert found is not None
    assert found.served.watched_seconds == pytest.approx(90, abs=0.1)
    assert found.served.faded_count == 0
