"""Waiting for a condition, with a deadline: the only way a test may wait."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.06
LONGEST_CALL = 1.0
"""A call that waits by itself is followed by no longer a pause."""


@overload
async def eventually(predicate: Callable[[], Awaitable[T]], within: float = 30.0) -> T: ...
@overload
async def eventually(predicate: Callable[[], T], within: float = 30.0) -> T: ...
async def eventually(predicate: Callable[[], Any], within: float = 30.0) -> Any:
    """Call `predicate` (plain or async) until it returns something true, and return that.

    Raises AssertionError with the last value after `within` seconds: more than a busy machine takes, since nobody who succeeds
    waits for it. An AssertionError of the predicate counts as not yet. Between two calls it pauses for 10 ms at first and for 60 ms
    later, and for as long as a call takes: who waits leaves the processors to what is waited for.
    """
    deadline = time.monotonic() + within
    pause = FIRST_PAUSE
    while True:
        error: AssertionError | None = None
        value = None
        began = time.monotonic()
        try:
            answer = predicate()
            value = await answer if inspect.isawaitable(answer) else answer
        except AssertionError as not_yet:
            error = not_yet
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s; the last value was {value!r}") from error
        await asyncio.sleep(max(pause, min(time.monotonic() - began, LONGEST_CALL)))
        pause = min(pause * 1.3, LONGEST_PAUSE)
