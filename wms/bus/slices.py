"""Slices: preparations run in one thread beside the event loop, some milliseconds at a time, in turns."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from wms.bus.delivery import Steps

SLICE_SECONDS = 0.03
"""The length of a slice in processor seconds. After it the next waiting work has its turn."""


class PreparationOutcome(msgspec.Struct):
    """The outcome of a preparation: a value, an error, or not done because it was given up."""

    seconds: float = 0.0
    """Processor seconds that the preparation took."""
    is_done: bool = False
    value: Any = None
    error: Exception | None = None


class Work(msgspec.Struct):
    """One preparation: its owner, its steps and its outcome."""

    owner: str
    steps: Steps
    outcome: PreparationOutcome


class Slices:
    """One thread for all preparations of a process. They share caches, so they never run concurrently."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "prepare")

    async def run(
        self, works: Sequence[Work], allowance: float, on_step: Callable[[], None] = lambda: None
    ) -> None:
        """Run the works in order, for at most `allowance` processor seconds for each owner. Works beyond it stay undone.

        `on_step` is called after each slice.
        """
        spent: dict[str, float] = {}
        position = 0
        loop = asyncio.get_running_loop()
        while position < len(works):
            position = await loop.run_in_executor(self._thread, _slice, works, position, spent, allowance)
            on_step()

    async def call(self, work: Callable[[], None]) -> None:
        """Run a function in the thread, between slices."""
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """End the thread after its current work."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _slice(works: Sequence[Work], position: int, spent: dict[str, float], allowance: float) -> int:
    """Run works until the slice ends; return the position at which to continue."""
    ends = time.thread_time() + SLICE_SECONDS
    while position < len(works):
        work = works[position]
        if not _advance(work, spent, allowance, ends):
            return position
        position += 1
        if time.thread_time() >= ends:
            break
    return position


def _advance(work: Work, spent: dict[str, float], allowance: float, ends: float) -> bool:
    """Advance one work. Return whether it is over: done, or given up because its owner's allowance is used."""
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
