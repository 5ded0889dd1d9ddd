"""Threads of the agent's own, for what must not wait until transfers leave one of the event loop's."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """At most `count` threads that do what blocks; closed, they end after what they do now."""

    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, name)

    async def run(self, call: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> T:
        """Return what the call returns; raise what it raises."""
        work = self._pool.submit(call, *arguments, **named)
        return await asyncio.wrap_future(work)

    def close(self) -> None:
        """Take no more calls, and wait for none."""
        self._pool.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
