"""Rows of removed queues are given up bit by bit: each change does little of it, and nobody sees a difference meanwhile."""

import gc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import settings

from tests.unit.matching.strategies import asks, offers
from tests.unit.matching.test_ads import canonical
from tests.unit.queue_index.test_index import IndexAgainstDictionary
from wms.ids import JobId, TaskQueueId
from wms.matching.ads import advertised
from wms.matching.shares import GroupShare
from wms.queue_index import index as queue_index
from wms.queue_index import renumbering
from wms.queue_index.index import QueueIndex
from wms.queue_index.renumbering import FREED, LOOKED_AT, MOVED, Leftovers, SlotTables

QUEUES, LEFT = 3_000, 100
PLACES = [offers(site=f"S{n}", tags=("t0", "t1"), memory_mb=4_000) for n in range(5)]


def full(count: int = QUEUES) -> QueueIndex:
    index = QueueIndex()
    for n in range(count):
        wanted = canonical(f"other.a{n} =?= undefined")
        asked = asks(sites=(f"S{n % 5}",), tags=(f"t{n % 3}",), owner=f"o{n % 40}", requirements=wanted)
        index.add_queue(TaskQueueId(n), asked)
        index.add(TaskQueueId(n), 1.0, [JobId(n + 1)])
    return index


@pytest.fixture
def half_way(monkeypatch: pytest.MonkeyPatch) -> QueueIndex:
    """An index that has moved a part of its queues, and is not done."""
    monkeypatch.setattr(queue_index, "_FEW_SLOTS", 40)
    index = full(100)
    for n in range(89):
        index.remove_queue(TaskQueueId(n))
    assert index._renumbering is not None
    assert 0 < len(index._renumbering.tables.queues) < len(index._slot_of)
    return index


def done(index: QueueIndex) -> QueueIndex:
    """Let queues come and go until all queues are moved."""
    for n in range(10_000, 10_100):
        if index._renumbering is None:
            return index
        index.add_queue(TaskQueueId(n), asks())
        index.remove_queue(TaskQueueId(n))
    raise AssertionError("it does not come to an end")


def test_no_change_moves_more_than_a_few_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    index, placed = full(), 0
    place = SlotTables.place

    def counted(tables: SlotTables, queue: renumbering.IndexedQueue) -> None:
        nonlocal placed
        placed += 1
        place(tables, queue)

    monkeypatch.setattr(SlotTables, "place", counted)
    most = 0
    for n in range(QUEUES - LEFT):
        placed = 0
        index.remove_queue(TaskQueueId(n))
        most = max(most, placed)
    assert most == MOVED
    assert len(index._queues) < QUEUES / 2, "the rows of removed queues are given up"


def test_no_change_looks_at_more_than_some_rows(half_way: QueueIndex) -> None:
    moving = half_way._renumbering
    assert moving is not None
    before = moving._looked_at
    half_way.remove_queue(TaskQueueId(99))
    assert moving._looked_at - before <= LOOKED_AT


def test_what_is_left_over_is_freed_in_parts() -> None:
    index = full()
    for n in range(QUEUES - LEFT):
        index.remove_queue(TaskQueueId(n))
        if index._leftovers._containers:
            break
    sizes = [_size(index._leftovers)]
    while sizes[-1]:
        index._leftovers.free()
        sizes.append(_size(index._leftovers))
    steps = [before - after for before, after in pairwise(sizes)]
    assert sizes[0] > 4 * QUEUES
    assert max(steps) == FREED


def _size(leftovers: Leftovers) -> int:
    return sum(map(len, leftovers._containers))


def test_jobs_and_weights_are_the_same_before_and_after(half_way: QueueIndex) -> None:
    half_way.add(TaskQueueId(95), 7.0, [JobId(1_001), JobId(1_002)])
    half_way.discard(JobId(98))
    half_way.remove_queue(TaskQueueId(99))
    before = known(half_way)
    assert len(before) == 10
    assert known(done(half_way)) == before


def known(index: QueueIndex) -> dict[TaskQueueId, tuple[int, float, list[bool]]]:
    return {
        tq_id: (
            index.count(tq_id),
            round(index.weight(tq_id), 9),
            [index.gives(tq_id, each) for each in PLACES],
        )
        for tq_id in index.queue_ids()
    }


def test_what_changes_meanwhile_holds_afterwards(half_way: QueueIndex) -> None:
    group = asks().vo, asks().owner_group
    half_way.close("S1", [("any", "")])
    half_way.count_usage({group: {"o10": 0.25}})
    half_way.set_shares({group: GroupShare(job_share=3.0)})
    half_way.advertise("S0", "", advertised({}, {}, 'other.owner == "o10"', ""))
    before = known(half_way)
    fits = {tq_id: fits for tq_id, (_, _, fits) in before.items()}
    assert {tq_id for tq_id in fits if fits[tq_id][0]} == {TaskQueueId(90)}
    assert not any(each[1] for each in fits.values())
    assert known(done(half_way)) == before


class RenumberedAllTheTime(IndexAgainstDictionary):
    """The same random changes, while queues are always being moved."""

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(queue_index, "_FEW_SLOTS", 0)
        self._patch.setattr(queue_index, "_SLOTS_A_QUEUE", 1)
        self._patch.setattr(renumbering, "MOVED", 1)
        self._patch.setattr(renumbering, "FREED", 1)
        super().__init__()

    def teardown(self) -> None:
        self._patch.undo()
        super().teardown()


TestRenumberedAllTheTime = RenumberedAllTheTime.TestCase
TestRenumberedAllTheTime.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)


def test_what_an_index_gives_up_is_freed_without_a_garbage_collection() -> None:
    rng = np.random.default_rng(5)
    gc.collect()
    gc.disable()
    try:
        index = full(1_500)
        before = index._tables
        for n, place in enumerate(PLACES):
            index.advertise(
                place.site, "ce", advertised({"a1": 4, "n": n}, {}, "other.own =?= undefined", "other.n")
            )
            assert index.select(place, 10, rng)
            index.why_nothing(place)
        for n in range(1_490):
            index.remove_queue(TaskQueueId(n))
        done(index)
        assert index._tables is not before
        assert len(index.select(PLACES[0], 10, rng)) > 0
        del before
        assert gc.collect() == 0
        del index
        assert gc.collect() == 0
    finally:
        gc.enable()
