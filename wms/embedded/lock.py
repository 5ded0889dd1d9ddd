"""A directory belongs to one living process: an flock on a file in it, which names its holder."""

import contextlib
import fcntl
import os
import time
from pathlib import Path

from wms.errors import Rejected


class DirectoryLock:
    """An exclusive lock on `path`, given back by the kernel when its holder dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd is not None

    def acquire(self) -> None:
        """Take the lock and write our pid into the file; a second call does nothing. Raises Rejected if another has it."""
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
            # Of a full disk. Left open, it would keep the lock from ourselves at the next attempt.
            os.close(fd)
            raise
        self._fd = fd

    def release(self) -> None:
        """Give the lock back; the file stays, since removing it would let two hold "the" lock."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None


def _taken(fd: int) -> bool:
    """Lock `fd`; patient for a moment, since who merely asks for the holder holds the lock for an instant."""
    for _ in range(10):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.01)
    return False


def written_pid(path: Path) -> int | None:
    """Return the pid in a lock file, or None if there is none."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return int(path.read_text("ascii"))
    return None


def holder(path: Path) -> int | None:
    """Return the pid of the living holder of the lock on `path`, or None if nobody holds it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # A shared lock, so that two who look at once do not see each other.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return written_pid(path)
    finally:
        os.close(fd)
    return None
