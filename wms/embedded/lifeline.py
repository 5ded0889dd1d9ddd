"""Watches the process that runs a system, for programs that must end with it but are not its children, such as pilots."""

import asyncio
import os
import select
from pathlib import Path
from typing import Self

from wms.embedded.lock import holder
from wms.errors import Unavailable


class Lifeline:
    """A pidfd of the process that holds a lock file. It refers to exactly this process, even if the pid is reused later."""

    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self._fd = fd

    @classmethod
    def open(cls, lock_path: Path) -> Self:
        """Return a handle of the process that holds the lock file now. Raise Unavailable if no process holds it."""
        while (pid := holder(lock_path)) is not None:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            if holder(lock_path) == pid:  # it still holds the lock, so the descriptor is of that process
                return cls(pid, fd)
            os.close(fd)
        raise Unavailable(f"nobody holds {lock_path}: the system is not up")

    def fileno(self) -> int:
        """Return the pidfd, which becomes readable once the watched process has ended. So `select` accepts this object."""
        return self._fd

    @property
    def alive(self) -> bool:
        """Whether the watched process is still running."""
        return not select.select([self._fd], [], [], 0)[0]

    async def wait(self) -> None:
        """Wait until the watched process has ended."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._fd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._fd)

    def close(self) -> None:
        """Close the file descriptor. The watched process is not affected."""
        os.close(self._fd)
