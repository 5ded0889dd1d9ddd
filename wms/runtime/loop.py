"""The loops of a service process: named tasks that run side by side until the process ends."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol

import structlog

from wms.cancellation import is_cancelled
from wms.db.database import GONE, RETRIED
from wms.errors import Unavailable, WmsError

log = structlog.get_logger()

RETRY_SECONDS = 0.5
"""The pause in seconds before a loop that failed because a server is away begins again."""
LATE_SECONDS = 10.0
"""After how many seconds loops that were told to end and have not ended are named in the log. Until then they may finish their batches."""


class Loop(Protocol):
    """A named task that a host runs until it shuts down."""

    @property
    def name(self) -> str:
        """The name of the loop in logs."""

    async def run(self) -> None:
        """Work until cancelled. If a server is away, raise its error: `run` is called again later. Returning is a fault that ends the process."""


class NamedLoop(NamedTuple):
    """A loop that is made of a function."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


class LoopEnded(WmsError):  # noqa: N818 - an outcome
    """A loop returned by itself although its host had not asked it to."""


async def endless(loop: Loop) -> None:
    """Run a loop until cancelled, again and again while a server is away. Raise LoopEnded if it returns, which a task group would not notice."""
    while True:
        try:
            await loop.run()
        except asyncio.CancelledError:
            if is_cancelled():
                raise
        except (*GONE, *RETRIED, Unavailable) as error:
            log.warning("a loop waits", loop=loop.name, error=repr(error))
            await asyncio.sleep(RETRY_SECONDS)
            continue
        raise LoopEnded(f"{loop.name} has ended by itself")


def name_late(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Name those of the tasks in the log that have not ended in `LATE_SECONDS` from now. Return at once."""
    asyncio.get_running_loop().call_later(LATE_SECONDS, _name_running, tasks)


def _name_running(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        if not task.done():
            log.error(
                "a loop does not end",
                loop=task.get_name(),
                at=[str(frame) for frame in task.get_stack(limit=5)],
            )
