"""Cuts all connections of a process in the moment in which a loop is told to end, at each place where the loop waits."""

import asyncio
import contextlib
import contextvars
import weakref
from collections.abc import Coroutine, Generator, Iterator
from typing import Any

from wms.cancellation import insistent_task
from wms.runtime.loop import Loop

IDLE_SECONDS = 0.3
"""A loop that does not come to its next wait within this time is in its last one: it pauses, or nothing comes."""
END_SECONDS = 10.0
"""How long a loop may take to end on a busy machine. What has swallowed its cancellation would take for ever."""


class Cuts:
    """The waits of one loop and of the tasks that it starts. At the wait `at` the loop is told to end and all connections are cut."""

    def __init__(self) -> None:
        self._transports: weakref.WeakSet[Any] = weakref.WeakSet()
        self._traced = contextvars.ContextVar("traced", default=False)
        self._waits = self._at = 0
        self._reached = asyncio.Event()

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """See all tasks and connections that are begun from now on."""
        loop: Any = asyncio.get_running_loop()
        opened = {name: getattr(loop, name) for name in ("create_connection", "create_unix_connection")}
        for name, open_ in opened.items():
            setattr(loop, name, self._seen(open_))
        loop.set_task_factory(self._task)
        try:
            yield
        finally:
            loop.set_task_factory(None)
            for name in opened:
                delattr(loop, name)

    def _seen(self, open_: Any) -> Any:
        async def opened(*args: Any, **options: Any) -> Any:
            transport, protocol = await open_(*args, **options)
            self._transports.add(transport)
            return transport, protocol

        return opened

    def _task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        return insistent_task(loop, self._followed(work) if self._traced.get() else work, **options)

    async def _followed(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await _Followed(self, work)

    def waits(self) -> None:
        """Count a wait. The loop is struck in the next turn of the event loop, when it really waits."""
        self._waits += 1
        if self._waits == self._at:
            self._reached.set()

    async def strike(self, loop: Loop, at: int) -> bool:
        """Run the loop to its wait `at`, then tell it to end and cut its connections. Return whether it had so many waits.

        Raise TimeoutError if the loop does not end.
        """
        self._waits, self._at = 0, at
        self._reached.clear()
        token = self._traced.set(True)
        task = asyncio.get_running_loop().create_task(loop.run())
        self._traced.reset(token)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                await self._reached.wait()
        task.cancel()
        for each in list(self._transports):
            each.abort()
        async with asyncio.timeout(END_SECONDS):
            await asyncio.wait([task])
        return self._reached.is_set()


class _Followed:
    """A coroutine whose waits are counted."""

    def __init__(self, cuts: Cuts, work: Coroutine[Any, Any, Any]) -> None:
        self._cuts = cuts
        self._work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        while True:
            try:
                future = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as end:
                return end.value
            self._cuts.waits()
            error = None
            try:
                yield future
            except BaseException as raised:
                error = raised
