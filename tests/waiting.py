"""Waiting for a condition, with a deadline: the only way a test may wait."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(predicate: Callable[[], Awaitable[T]], within: float = 30.0) -> T: ...
@overload
async def eventually(predicate: Callable[[], T], within: float = 30.0) -> T: ...
async def eventually(predicate: Callable[[], Any], within: float = 30.0) -> Any:
    """Call `predicate` (plain or async) each 20 ms until it returns something true, and return that.

    Raises AssertionError with the last value after `within` seconds: more than a busy machine takes, since nobody who succeeds
    waits for it. An AssertionError of the predicate counts as not yet.
    """
    deadline = time.monotonic() + within
    while True:
        error: AssertionError | None = None
        value = None
        try:
            answer = predicate()
            value = await answer if inspect.isawaitable(answer) else answer
        except AssertionError as not_yet:
            error = not_yet
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s; the last value was {value!r}") from error
        await asyncio.sleep(0.02)
