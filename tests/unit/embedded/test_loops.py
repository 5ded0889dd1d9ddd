"""A loop of the supervisor goes on whatever becomes of one round."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.waiting import eventually
from wms.embedded.loops import RestartedLoops


async def fails() -> None:
    raise ValueError("no such thing")


async def ends() -> None:
    pass


async def is_cancelled() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("first", "why"),
    [(fails, "ValueError: no such thing"), (ends, "ended"), (is_cancelled, "cancelled from inside")],
)
async def test_it_is_begun_again_and_its_failure_remembered(
    first: Callable[[], Awaitable[None]], why: str
) -> None:
    rounds = 0

    async def loop() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            await first()
        else:
            await asyncio.Event().wait()

    loops = RestartedLoops(pause_seconds=0.01)
    loops.start("keeper", loop)
    await eventually(lambda: rounds == 2)
    assert why in loops.failing()["keeper"]
    await loops.stop_all()


async def test_it_ends_when_it_is_stopped() -> None:
    loops = RestartedLoops()
    ended = asyncio.Event()

    async def loop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    loops.start("keeper", loop)
    await asyncio.sleep(0)
    await loops.stop("keeper")
    assert ended.is_set()
    assert loops.failing() == {}
