"""Exclusive locks on directories: a `flock` on a file in the directory, which contains the pid of the process that holds it."""

import contextlib
import fcntl
import os
import time
from pathlib import Path

from wms.errors import Rejected


class DirectoryLock:
    """An exclusive lock on the file `path`. The kernel releases it when the process that holds it dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd is not None

    def acquire(self) -> None:
        """Take the lock and write this process's pid into the file; do nothing if this object holds it already.

        Raise Rejected if another process holds the lock, and OSError if the file cannot be written.
        """
        if self._fd is not None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _taken(fd):
            os.close(fd)
            raise Rejected(
                "IN_USE",
                f"{self.path.parent} is in use by process {written_pid(self.path) or '(unknown)'}",
                "stop that process, or use another directory",
            )
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            # The disk is full. An open descriptor would keep the lock, and the next attempt would find it taken.
            os.close(fd)
            raise
        self._fd = fd

    def release(self) -> None:
        """Release the lock and empty the file, which stays. Do nothing if this object does not hold the lock."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None


def _taken(fd: int) -> bool:
    """Try for 0.1 s to lock the open file; return whether that succeeded. `holder` in another process may lock it for a moment."""
    for _ in range(10):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.01)
    return False


def written_pid(path: Path) -> int | None:
    """Return the pid in a lock file, whether or not that process is running; None if there is no file or no pid in it."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return int(path.read_text("ascii"))
    return None


def holder(path: Path) -> int | None:
    """Return the pid of the process that holds the lock on the file `path`; None if no process holds it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # A shared lock, so that two processes that look at once do not see each other's.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return written_pid(path)
    finally:
        os.close(fd)
    return None
