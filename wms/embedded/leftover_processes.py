"""Ends processes that an earlier run of a system left. They are recognised by the system's id in their environment."""

import asyncio
import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

VARIABLE = "WMS_SYSTEM"


def system_id(data_dir: Path) -> str:
    """Return the id of the system in this data directory: a digest of the path, so that it is the same at each run."""
    return hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()[:16]


def members(system: str) -> list[psutil.Process]:
    """Return the running processes with this system's id in their environment, without this process and its ancestors."""
    own = psutil.Process()
    kept = {own.pid, *(parent.pid for parent in own.parents())}
    return [each for each in psutil.process_iter() if each.pid not in kept and _belongs(each, system)]


def _belongs(process: psutil.Process, system: str) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(VARIABLE) == system
    return False


async def sweep(system: str, *, grace: float) -> int:
    """End all processes of a system: by SIGTERM, and after `grace` seconds by SIGKILL. Return how many were found at first.

    A process may start another just before its end, so the search is repeated, at most 20 times, until none is left.
    """
    found = await asyncio.to_thread(members, system)
    count = len(found)
    if found:
        _each(found, "terminate")
        await survivors(found, within=grace)
        for _ in range(20):
            if not (found := await asyncio.to_thread(members, system)):
                break
            _each(found, "kill")
            await survivors(found, within=1.0)
    return count


async def survivors(processes: Sequence[psutil.Process], *, within: float) -> list[psutil.Process]:
    """Wait until all these processes have ended, at most `within` seconds. Return those that are still running.

    A zombie counts as ended, since in a container it may never be reaped.
    """
    deadline = time.monotonic() + within
    while (left := [each for each in processes if _lives(each)]) and time.monotonic() < deadline:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.01)
    return left


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _each(processes: Sequence[psutil.Process], method: str) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            getattr(process, method)()
