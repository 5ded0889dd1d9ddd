"""Blocks: what is cut out of them, what is left, and what becomes of them as one."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.ids import JobId, TaskQueueId, joined
from wms.job.block import Block, Range
from wms.job.job import path
from wms.job.reasons import Code, Reason
from wms.job.state import Event, State

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def block(first: int = 100, last: int = 199) -> Block:
    fields: dict[str, Any] = {
        "sweep": JobId(100), "state": State.WAITING, "event_seq": 2, "reason": "QUEUED", "changed_at": NOW,
        "history": (), "description_id": 100, "tq_id": TaskQueueId(1), "owner": "ann", "owner_group": "g", "vo": "v",
        "name": "s", "user_priority": 1.0, "max_attempts": 3, "submitted_at": NOW, "parameters": (),
    }  # fmt: skip
    return Block(first=JobId(first), last=JobId(last), **fields)


def spans(blocks: Any) -> list[Range]:
    return [(each.first, each.last) for each in blocks]


def ids(ranges: list[Range]) -> set[int]:
    return {n for low, high in ranges for n in range(low, high + 1)}


RANGES = st.lists(st.tuples(st.integers(100, 199), st.integers(0, 20)), max_size=5).map(
    lambda found: list(joined((low, min(199, low + more)) for low, more in found))
)


@given(RANGES)
def test_what_is_cut_out_and_what_is_left_are_the_whole(cut: list[Range]) -> None:
    left = spans(block().without(cut))
    assert ids(left) == ids([(100, 199)]) - ids(cut)
    assert all(high < low for (_, high), (low, _) in pairwise(left))


@given(st.lists(st.integers(100, 199), max_size=10).map(sorted), st.integers(1, 60))
def test_ranges_around_ids_hold_them_and_are_long_enough(wanted: list[int], least: int) -> None:
    found = list(block().around(wanted, least))
    assert set(wanted) <= ids(found) <= ids([(100, 199)])
    assert all(high < low for (_, high), (low, _) in pairwise(found))
    assert all(high - low + 1 == least for low, high in found if high < 199)


def test_ids_near_the_head_take_it_along() -> None:
    assert list(block().around([105], 10)) == [(100, 109)]
    assert list(block().around([150], 10)) == [(150, 159)], "and those far away do not"


def test_a_part_outside_of_a_block_is_a_fault() -> None:
    with pytest.raises(AssertionError):
        block().part(90, 110)


def test_a_block_that_moves_remembers_each_step() -> None:
    held = path(State.WAITING, (Event.HOLD, Reason(Code.HELD_BY_USER, "wait")))
    moved = block().moved(held, NOW, "user ann")
    assert (moved.state, moved.event_seq, moved.reason) == (State.HELD, 3, "HELD_BY_USER")
    released = moved.moved(path(State.HELD, (Event.RELEASE, Reason(Code.RELEASED))), NOW, "user ann")
    assert [(each.seq, each.before, each.state, each.text, each.source) for each in released.history] == [
        (3, State.WAITING, State.HELD, "wait", "user ann"),
        (4, State.HELD, State.WAITING, "", "user ann"),
    ]


def test_each_of_its_jobs_is_as_the_block_is() -> None:
    one = block().job(JobId(150))
    assert (one.job_id, one.state, one.event_seq, one.epoch, one.attempts, one.lease) == (
        150,
        "Waiting",
        2,
        0,
        0,
        None,
    )
