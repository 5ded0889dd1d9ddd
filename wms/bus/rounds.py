"""Rounds: lanes of a consumer that begin together, and end together after their current batches."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import structlog

log = structlog.get_logger()

T = TypeVar("T")


class Round:
    """One assignment of partitions: when one lane ends, all lanes do."""

    def __init__(self, wanted: tuple[int, ...]) -> None:
        self.wanted = wanted
        self.is_over = False


def is_cancelled() -> bool:
    """Return whether the current task is asked to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def together(lanes: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all lanes. When one fails the others end after their batches, and the first failure is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(lane)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await something to its end, even when cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            # The error stays in the task; raising it here would lose the cancellation.
            log.warning("last batch not handled", error=repr(error))
        raise
