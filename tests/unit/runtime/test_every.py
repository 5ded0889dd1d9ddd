"""A loop tells what is wrong with it: a round that does not end, rounds that fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from wms.errors import Unavailable
from wms.runtime import every
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


class Rounds:
    """A loop whose rounds end as the test says, each begun when the test says; but for the first, which begins at once."""

    def __init__(self, *ends: Exception | None, seconds: float = 1_000.0) -> None:
        self.at: list[float] = []
        """When each round began, by a clock that nobody sets."""
        self._ends = ends
        self._begun = asyncio.Semaphore(0)
        self.loop = Every("reasons", seconds, self._act)

    async def _act(self) -> None:
        self.at.append(asyncio.get_running_loop().time())
        self._begun.release()
        if (end := self._ends[min(len(self.at), len(self._ends)) - 1]) is not None:
            raise end

    async def one(self) -> None:
        """Wait until one more round is over: each is as soon as it has begun."""
        await self._begun.acquire()

    async def next(self) -> None:
        """Have the next round begin now."""
        self.loop.wake()
        await self.one()


@asynccontextmanager
async def running(rounds: Rounds) -> AsyncIterator[Rounds]:
    task = asyncio.create_task(rounds.loop.run())
    try:
        await rounds.one()
        yield rounds
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_rounds_that_fail_are_told_until_one_works(clock: list[float]) -> None:
    gone = Unavailable("no database")
    async with running(Rounds(gone, gone, gone, None)) as rounds:
        clock[0] += 11
        await rounds.next()
        assert rounds.loop.trouble() == "", "two that failed may be chance"
        await rounds.next()
        assert rounds.loop.trouble().startswith("failed 3 times in 11 s: Unavailable")
        await rounds.next()
        assert rounds.loop.trouble() == ""


async def test_rounds_that_fail_at_once_are_no_trouble_yet(clock: list[float]) -> None:
    async with running(Rounds(Unavailable("no database"))) as rounds:
        for _ in range(5):
            clock[0] += 1
            await rounds.next()
        assert rounds.loop.trouble() == ""


async def test_a_fault_is_told_and_the_loop_goes_on(clock: list[float]) -> None:
    async with running(
        Rounds(OverflowError("a number"), ValueError("a text"), ValueError("it"), None)
    ) as rounds:
        for _ in range(2):
            clock[0] += 20
            await rounds.next()
        assert "ValueError" in rounds.loop.trouble()
        await rounds.next()
        assert rounds.loop.trouble() == ""


async def test_a_round_that_failed_is_tried_again_long_before_its_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(every, "RETRY_SECONDS", 0.01)
    async with running(Rounds(Unavailable("no database"), OSError("cut"), None, seconds=600.0)) as rounds:
        async with asyncio.timeout(30):
            await rounds.one()
            await rounds.one()


async def test_each_round_that_fails_by_a_fault_doubles_the_pause() -> None:
    async with running(Rounds(ValueError("a text"), seconds=0.01)) as rounds:
        for _ in range(4):
            await rounds.one()
        pauses = [later - earlier for earlier, later in pairwise(rounds.at)]
        assert all(pause >= 0.01 * 2**n for n, pause in enumerate(pauses, start=1)), pauses


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
