"""Cancellation: it is repeated until it is obeyed, and what was begun is ended even if cancelled."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from tests.waiting import eventually
from wms import cancellation
from wms.cancellation import InsistentTask, is_cancelled, to_its_end


class FaultError(Exception):
    """A fault injected by a test."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "REPEAT_SECONDS", 0.01)


def insistent(work: Callable[[], Awaitable[None]]) -> InsistentTask[None]:
    async def begun() -> None:
        await work()

    return InsistentTask(begun(), loop=asyncio.get_running_loop())


async def test_a_loop_that_swallows_its_cancellation_ends_all_the_same() -> None:
    swallowed: list[int] = []

    async def loop() -> None:
        while len(swallowed) < 3:
            try:
                await asyncio.sleep(1_000)
            except asyncio.CancelledError:
                # As by a driver whose cleanup fails, and a handler that tries again.
                swallowed.append(asyncio.current_task().cancelling())  # type: ignore[union-attr]  # there is one
        await asyncio.sleep(1_000)

    task = insistent(loop)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert swallowed == [1, 1, 1], "it is one request, however often it is repeated"


async def test_a_time_limit_that_was_swallowed_is_not_repeated_after_its_end() -> None:
    async def loop() -> None:
        with contextlib.suppress(FaultError):
            async with asyncio.timeout(0.001):
                try:
                    await asyncio.sleep(1_000)
                except asyncio.CancelledError:
                    raise FaultError from None
        await asyncio.sleep(0.05)

    task = insistent(loop)
    await task
    assert not task.cancelling()


async def test_what_was_begun_is_ended_and_the_cancellation_is_not_lost() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    ended: list[bool] = []

    async def batch() -> None:
        begun.set()
        await go_on.wait()
        ended.append(is_cancelled())

    task = asyncio.create_task(to_its_end(batch()))
    await begun.wait()
    for _ in range(3):
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
