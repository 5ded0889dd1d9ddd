"""Runs preparations of messages in one thread beside the event loop, some milliseconds at a time, so that other work gets its turn."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from wms.bus.delivery import Steps

SLICE_SECONDS = 0.03
"""For how many processor seconds preparations run before other work gets its turn in the thread."""


class PreparationOutcome(msgspec.Struct):
    """The outcome of one message's preparation: a value, an error, or neither if its time ran out."""

    seconds: float = 0.0
    """How many processor seconds the preparation took."""
    is_done: bool = False
    value: Any = None
    error: Exception | None = None


class PreparationWork(msgspec.Struct):
    """The preparation of one message: its owner, its steps, and its outcome, which is filled in when it ends."""

    owner: str
    steps: Steps
    outcome: PreparationOutcome


class TimeSlices:
    """One thread that runs all preparations of a process. They share caches, so they must not run in parallel."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "prepare")

    async def run(
        self, works: Sequence[PreparationWork], allowance: float, on_step: Callable[[], None] = lambda: None
    ) -> None:
        """Run preparations in order, at most `allowance` processor seconds for each owner, and fill in their outcomes.

        Preparations over the allowance are not finished. `on_step` is called every few milliseconds.
        """
        spent: dict[str, float] = {}
        position = 0
        loop = asyncio.get_running_loop()
        while position < len(works):
            position = await loop.run_in_executor(self._thread, _slice, works, position, spent, allowance)
            on_step()

    async def call(self, work: Callable[[], None]) -> None:
        """Run a function in the thread, while no preparation runs, and wait until it returns."""
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """End the thread after its current work. Waiting work is dropped."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _slice(works: Sequence[PreparationWork], position: int, spent: dict[str, float], allowance: float) -> int:
    """Run preparations from index `position` on, for some milliseconds. Return the index at which to continue.

    `spent` are the processor seconds of each owner so far, which are increased in place. `allowance` is their limit.
    """
    ends = time.thread_time() + SLICE_SECONDS
    while position < len(works):
        work = works[position]
        if not _advance(work, spent, allowance, ends):
            return position
        position += 1
        if time.thread_time() >= ends:
            break
    return position


def _advance(work: PreparationWork, spent: dict[str, float], allowance: float, ends: float) -> bool:
    """Prepare one message further, until `ends` at the latest. Return whether that is over: done, or given up as its owner's time is used up.

    `spent` has the processor seconds used so far, by owner, and is updated. `allowance` is the most for an owner. `ends` is a time of this
    thread's processor clock.
    """
    began = now = time.thread_time()
    before = spent.get(work.owner, 0.0)
    try:
        while before + now - began < allowance:
            if now >= ends:
                return False
            next(work.steps)
            now = time.thread_time()
    except StopIteration as stop:
        work.outcome.is_done, work.outcome.value = True, stop.value
    except Exception as error:  # noqa: BLE001 - of this one message: it fails its handling, not that of others
        work.outcome.is_done, work.outcome.error = True, error
    else:
        work.steps.close()
    finally:
        took = time.thread_time() - began
        work.outcome.seconds += took
        spent[work.owner] = before + took
    return True
