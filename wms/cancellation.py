"""Cancellation that is not lost: a task that was asked to end is asked again until it ends.

A library may swallow a cancellation, or an error of its cleanup may replace it, as asyncpg's InterfaceError does when the connection dies in that
moment. Whoever catches the error then goes on as if nothing had been asked. No handler can know of all such places, so the task repeats it.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

log = structlog.get_logger()

T = TypeVar("T")

REPEAT_SECONDS = 1.0
"""After how many seconds a task that has not ended is cancelled again. Cleanup may take so long for each single step."""


class InsistentTask(asyncio.Task[T]):
    """A task that is cancelled again every `REPEAT_SECONDS`, until it has ended or took the cancellation back by `uncancel`."""

    _repeating: asyncio.TimerHandle | None = None

    def cancel(self, msg: Any = None) -> bool:
        """Ask the task to end, as asyncio's own task does, and ask again until it does."""
        is_asked = super().cancel(msg)
        if is_asked and self._repeating is None:
            self._repeating = self.get_loop().call_later(REPEAT_SECONDS, self._repeat)
        return is_asked

    def _repeat(self) -> None:
        self._repeating = None
        if self.cancelling() and self.cancel():
            # It is the same request, not one more: asyncio counts them to tell a time limit from its caller's cancellation.
            self.uncancel()


def insistent_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """Return a task of `loop` for `work`. It is the task factory of the event loops of our processes."""
    return InsistentTask(work, loop=loop, **options)


def is_cancelled() -> bool:
    """Return whether the current asyncio task has been asked to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end, even if the caller is cancelled meanwhile; return its result.

    If the caller was cancelled, raise CancelledError once the work has ended.
    """
    task = asyncio.ensure_future(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as told:
            cancellation = told
    if cancellation is None:
        return task.result()
    if not task.cancelled() and (error := task.exception()):
        # The error stays in the task; raising it here would lose the cancellation.
        log.warning("work that ended after its caller failed", error=repr(error))
    raise cancellation
