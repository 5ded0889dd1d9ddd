"""A loop tells what is wrong with it: a round that does not end, rounds that fail."""

import asyncio

import pytest

from wms.errors import Unavailable
from wms.runtime.every import Every


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("wms.runtime.every.time.monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(("seconds", "patience"), [(1.0, 10), (60.0, 60)])
async def test_a_round_that_does_not_end_is_told(clock: list[float], seconds: float, patience: float) -> None:
    begun = asyncio.Event()

    async def stick() -> None:
        begun.set()
        await asyncio.Event().wait()

    loop = Every("reasons", seconds, stick)
    task = asyncio.create_task(loop.run())
    await begun.wait()
    clock[0] += patience
    assert loop.trouble() == ""
    clock[0] += 1
    assert loop.trouble() == f"at one round for {patience + 1:.0f} s"
    task.cancel()
    await asyncio.wait([task])


async def test_rounds_that_fail_are_told_until_one_works(clock: list[float]) -> None:
    works = False

    async def act() -> None:
        if not works:
            raise Unavailable("no database")

    loop = Every("reasons", 1.0, act)
    await loop._once()
    assert loop.trouble() == ""
    clock[0] += 11
    await loop._once()
    assert loop.trouble().startswith("fails for 11 s: Unavailable")
    works = True
    await loop._once()
    assert loop.trouble() == ""


async def test_a_round_that_hangs_is_cancelled_and_the_loop_goes_on() -> None:
    rounds = 0
    again = asyncio.Event()

    async def act() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            again.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(Every("reasons", 0.001, act, endless_after=0.01).run())
    async with asyncio.timeout(30):
        await again.wait()
    task.cancel()
    await asyncio.wait([task])
