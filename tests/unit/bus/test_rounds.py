"""Rounds: lanes end together after their batches, and what was begun is ended even if cancelled."""

import asyncio

import pytest

from tests.waiting import eventually
from wms.bus.rounds import is_cancelled, to_its_end, together


class FaultError(Exception):
    """A fault injected by a test."""


async def test_when_one_lane_fails_the_others_end_and_the_fault_is_raised() -> None:
    ended: list[str] = []

    async def failing() -> None:
        raise FaultError("one")

    async def going_on() -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            ended.append("other")

    with pytest.raises(FaultError, match="one"):
        await together([going_on(), failing()])
    assert ended == ["other"]


async def test_lanes_that_end_by_themselves_end_the_round() -> None:
    done: list[int] = []

    async def lane(n: int) -> None:
        await asyncio.sleep(0)
        done.append(n)

    await together([lane(1), lane(2)])
    assert done == [1, 2]


async def test_what_was_begun_is_ended_and_the_cancellation_is_not_lost() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    ended: list[bool] = []

    async def batch() -> None:
        begun.set()
        await go_on.wait()
        ended.append(is_cancelled())

    task = asyncio.create_task(to_its_end(batch()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [False], "the batch itself was not cancelled"


async def test_a_fault_of_the_last_batch_does_not_hide_the_cancellation() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def batch() -> None:
        begun.set()
        await go_on.wait()
        raise FaultError

    task = asyncio.create_task(to_its_end(batch()))
    await begun.wait()
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_without_a_cancellation_the_outcome_is_the_works() -> None:
    async def value() -> int:
        return 7

    async def fault() -> None:
        raise FaultError

    assert await to_its_end(value()) == 7
    with pytest.raises(FaultError):
        await to_its_end(fault())


async def test_a_task_that_is_asked_to_end_knows_it() -> None:
    known: list[bool] = []

    async def looks() -> None:
        known.append(is_cancelled())
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            known.append(is_cancelled())
            raise

    task = asyncio.create_task(looks())
    await eventually(lambda: known)
    task.cancel()
    await asyncio.wait([task])
    assert known == [False, True]
