"""Runs a system for the duration of one command. If the command fails, the system's files are kept, so that a person can read the logs."""

import asyncio
import contextlib
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from wms.embedded.system import System
from wms.errors import Rejected, Unavailable


class RunFailed(Exception):  # noqa: N818 - an outcome that the command reports, not a fault of the program
    """The system worked, but jobs did not end as expected. `findings` has one line for each deviation."""

    def __init__(self, *findings: str) -> None:
        super().__init__(*findings)
        self.findings = findings


@contextlib.asynccontextmanager
async def own_system(
    data: Path | None, tell: Callable[[str], None], **options: object
) -> AsyncIterator[System]:
    """Run a system for an `async with` block, in `data` or else in a temporary directory. `options` are those of `System`.

    A temporary directory is removed afterwards. It is kept if the block raises RunFailed, Rejected, Unavailable or OSError. Then `tell`
    gets a line with its path and that of its logs. SIGTERM ends the block like Ctrl-C. Raise Rejected if `data` is not empty.
    """
    _check_empty(data)
    told = _ended_by_sigterm()
    place = data or Path(tempfile.mkdtemp(prefix="wms-"))
    try:
        async with System(place, **options) as system:  # type: ignore[arg-type]
            yield system
    except (RunFailed, Rejected, Unavailable, OSError):
        tell(
            f"wms: everything is left in {place}: the logs are {place}/*/*.log, services/*/*.log and pilots/*/log"
        )
        raise
    except BaseException:
        _remove(place, keep=data is not None)
        if told.is_set():
            raise KeyboardInterrupt from None
        raise
    _remove(place, keep=data is not None)


def _ended_by_sigterm() -> asyncio.Event:
    """Make SIGTERM cancel the current task. Return an event that is set when the signal comes."""
    told, task = asyncio.Event(), asyncio.current_task()
    assert task is not None

    def end() -> None:
        told.set()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    return told


def _check_empty(data: Path | None) -> None:
    if data is not None and data.exists() and any(data.iterdir()):
        raise Rejected(
            "NOT_EMPTY", f"{data} has something in it", "name a directory that is empty or not there"
        )


def _remove(place: Path, *, keep: bool) -> None:
    if not keep:
        shutil.rmtree(place, ignore_errors=True)
