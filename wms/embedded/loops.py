"""Endless loops as asyncio tasks, which are restarted when they return or fail. The last error of each is kept."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger()

RESTART_SECONDS = 1.0
REMEMBERED_SECONDS = 30.0
"""How long a loop is reported as failing after its last failure, in seconds."""


class RestartedLoops:
    """Runs endless coroutines by name, each in a task. A coroutine that returns or raises is started again after `pause_seconds`."""

    def __init__(self, pause_seconds: float = RESTART_SECONDS) -> None:
        self._pause_seconds = pause_seconds
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failures: dict[str, tuple[float, str]] = {}

    def start(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Run the coroutine that `loop` returns, and start it again whenever it ends, until `stop`. The name must not be in use."""
        assert name not in self._tasks, name
        self._tasks[name] = asyncio.create_task(self._run(name, loop), name=name)

    async def stop(self, name: str) -> None:
        """Cancel the loop of this name and wait until it has ended; do nothing if there is none."""
        if (task := self._tasks.pop(name, None)) is not None:
            task.cancel()
            await asyncio.wait([task])

    async def stop_all(self) -> None:
        """Cancel all loops and wait until they have ended."""
        for name in tuple(self._tasks):
            await self.stop(name)

    def failing(self) -> dict[str, str]:
        """Return, by name, the last error of each loop that failed within the last `REMEMBERED_SECONDS`."""
        since = time.monotonic() - REMEMBERED_SECONDS
        return {name: error for name, (at, error) in self._failures.items() if at > since}

    async def _run(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await loop()
                self._note(name, "it ended by itself")
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                self._note(name, "it was cancelled from inside")
            except Exception as error:  # noqa: BLE001 - the loop goes on, whatever the fault
                self._note(name, f"{type(error).__name__}: {error}")
            await asyncio.sleep(self._pause_seconds)

    def _note(self, name: str, error: str) -> None:
        self._failures[name] = (time.monotonic(), error)
        with contextlib.suppress(OSError):
            log.error("loop.restarted", loop=name, error=error)
