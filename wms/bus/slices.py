"""Slices: work of messages in one thread beside the event loop, some milliseconds at a time, so that none waits for another's."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from wms.bus.delivery import Steps

SLICE_SECONDS = 0.03
"""Of processor time; then the next of those that wait for the thread has its turn."""


class PreparationOutcome(msgspec.Struct):
    """How far a preparation came: done with a value or an error, or given up."""

    seconds: float = 0.0
    """Of processor time."""
    is_done: bool = False
    value: Any = None
    error: Exception | None = None


class Work(msgspec.Struct):
    """One preparation: whose it is, its steps, and how far it has come."""

    owner: str
    steps: Steps
    outcome: PreparationOutcome


class Slices:
    """One thread for all preparations of a process: they share what they remember, and no two run at once."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "prepare")

    async def run(
        self, works: Sequence[Work], allowance: float, on_step: Callable[[], None] = lambda: None
    ) -> None:
        """Do the works in their order, of each owner's so many seconds at most: the others stay undone.

        `on_step` is called after each slice.
        """
        spent: dict[str, float] = {}
        position = 0
        loop = asyncio.get_running_loop()
        while position < len(works):
            position = await loop.run_in_executor(self._thread, _slice, works, position, spent, allowance)
            on_step()

    async def call(self, work: Callable[[], None]) -> None:
        """Do something in that thread, between the slices of others."""
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Let the thread end when it has done what it does now."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _slice(works: Sequence[Work], position: int, spent: dict[str, float], allowance: float) -> int:
    """Work until the slice is over; return the position to go on from."""
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
    """Go on with one work; return whether it is over: done, or given up since its owner's allowance is spent."""
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
