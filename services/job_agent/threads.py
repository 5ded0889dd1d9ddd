"""Pools of threads beside the event loop's own, for short blocking calls that must not wait until file transfers are done."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """A pool of at most `count` threads for blocking calls. The threads' names begin with `name`."""

    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, name)

    async def run(self, call: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> T:
        """Run a blocking call in one of the threads, once one is free. Return its result or raise its error."""
        work = self._pool.submit(call, *arguments, **named)
        return await asyncio.wrap_future(work)

    def close(self) -> None:
        """Accept no more calls. Running calls go on; this does not wait for them."""
        self._pool.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
