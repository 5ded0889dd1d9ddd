"""Rounds of a consumer: its lanes (groups of partitions with a transaction each) start together. If one ends, the others end after a batch."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import structlog

log = structlog.get_logger()

T = TypeVar("T")


class Round:
    """A period in which a consumer's lanes read the partitions `wanted`. Every lane ends after its current batch once `is_over` is set."""

    def __init__(self, wanted: tuple[int, ...]) -> None:
        self.wanted = wanted
        self.is_over = False


def is_cancelled() -> bool:
    """Return whether the current asyncio task has been asked to cancel."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def together(lanes: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run the coroutines of all lanes side by side. If one fails, cancel the others and raise its error."""
    try:
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(lane)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end, even if the caller is cancelled meanwhile; return its result.

    If the caller was cancelled, raise CancelledError once the work has ended.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            # The error stays in the task; raising it here would lose the cancellation.
            log.warning("last batch not handled", error=repr(error))
        raise
