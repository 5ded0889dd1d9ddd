"""Rounds: the lanes of a consumer begin together, and end together after their current batches."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import structlog

log = structlog.get_logger()

T = TypeVar("T")


class Round:
    """One assignment of partitions to a consumer's lanes. All lanes end when one does."""

    def __init__(self, wanted: tuple[int, ...]) -> None:
        self.wanted = wanted
        self.is_over = False


def is_cancelled() -> bool:
    """Return whether cancellation of the current task was requested."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def together(lanes: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all lanes. If one fails the others are cancelled, and the first failure is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(lane)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await the work's end, even if the caller is cancelled meanwhile; return its result."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            # The error stays in the task; raising it here would lose the cancellation.
            log.warning("last batch not handled", error=repr(error))
        raise
