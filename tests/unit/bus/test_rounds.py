"""Rounds: lanes end together after their batches."""

import asyncio

import pytest

from wms.bus.rounds import together


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
