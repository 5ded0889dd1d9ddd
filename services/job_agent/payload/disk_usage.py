"""Counts what a payload takes on disk: files in its directories, and deleted files that its processes still have open. Blocking.

Directories are opened one below the other, and no link is followed. So a payload that swaps them while they are counted leads
nowhere else, and the length of a path hides nothing.
"""

import contextlib
import errno
import math
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

ENTRY_LEAST = 4_096
"""The fewest bytes that a file or a directory counts. So the number of empty files is bounded, too."""
DEPTH_MOST, DEPTH_DEAR = 200, 16
"""The most directories below each other that are counted. Each takes three descriptors meanwhile. So what lies deeper than
DEPTH_DEAR is counted of one payload at a time."""
_deep = threading.Lock()
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_ENTERED = stat.S_IRUSR | stat.S_IXUSR
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

FileId = tuple[int, int]
"""The device and the inode of a file."""


class UncountableError(Exception):
    """A payload has more than can be counted in time, so it is not known what it takes. The text says what it has."""


class _EnoughError(Exception):
    """So much is counted that the rest does not matter."""


class _Count:
    """A count of bytes on disk, which ends when there are `most` of them. So the names that it looks at are bounded, too."""

    def __init__(self, most: float) -> None:
        self.total = 0
        self._most = most

    def add(self, entry: "os.DirEntry[str]") -> None:
        """Add the bytes of a file or directory. Each of several hard links to a file counts its share of it."""
        with contextlib.suppress(OSError):  # gone meanwhile
            found = entry.stat(follow_symlinks=False)
            names = 1 if stat.S_ISDIR(found.st_mode) else max(1, found.st_nlink)
            self.total += max(ENTRY_LEAST, found.st_blocks * 512 // names)
            if self.total >= self._most:
                raise _EnoughError


def disk_bytes(directories: Iterable[Path], most: float = math.inf) -> int:
    """Return the bytes on disk of all files below these directories; `most` or somewhat more if they have more.

    A file with several hard links counts once, but ENTRY_LEAST for each. Raise UncountableError if directories are nested
    deeper than DEPTH_MOST.
    """
    count = _Count(most)
    with contextlib.suppress(_EnoughError):
        for directory in directories:
            _count_in(str(directory), None, 0, count)
    return count.total


def _count_in(name: str, above: int | None, depth: int, count: _Count) -> None:
    if depth > DEPTH_MOST:
        raise UncountableError(f"nested more than {DEPTH_MOST} directories in each other")
    with (
        _deep if depth == DEPTH_DEAR else contextlib.nullcontext(),
        _while_there(),
        _opened(name, above) as directory,
        os.scandir(directory) as entries,
    ):
        for entry in entries:
            count.add(entry)
            if entry.is_dir(follow_symlinks=False):
                _count_in(entry.name, directory, depth + 1, count)


@contextlib.contextmanager
def _while_there() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        # It is gone meanwhile.


@contextlib.contextmanager
def _opened(name: str, above: int | None) -> Iterator[int]:
    """Open a directory, and close it at the end of the context. `above` is the descriptor of the directory with it, if it is in one.

    A payload of the agent's own user may have taken the right to enter it: meanwhile it has that. Raise OSError if it is gone.
    """
    with contextlib.ExitStack() as closing:
        # A link in its place would not be opened at all.
        held = _held(os.open(name, os.O_PATH | _DIRECTORY, dir_fd=above), closing)
        mode = stat.S_IMODE(os.fstat(held).st_mode)
        if mode & _ENTERED != _ENTERED and os.geteuid() != 0:
            os.chmod(f"/proc/self/fd/{held}", mode | _ENTERED)  # noqa: PTH101 - of the very directory
            closing.callback(_restore, held, mode)
        yield _held(os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=held), closing)


def _held(descriptor: int, closing: contextlib.ExitStack) -> int:
    closing.callback(os.close, descriptor)
    return descriptor


def _restore(descriptor: int, mode: int) -> None:
    with contextlib.suppress(OSError):
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101 - of the very directory


def deleted_files(pids: Iterable[int], proc: str, most: int) -> dict[FileId, int]:
    """Return the bytes of deleted files that these processes have open or mapped, by file.

    They are on a disk or in memory: shared memory without a name is such a file. `proc` is the proc file system in which the pids
    are valid. What is mapped and not open is told to root alone. Raise UncountableError if there are more than `most` open files
    and mapped ranges.
    """
    found: dict[FileId, int] = {}
    looked = 0
    for pid in pids:
        for path in _open_and_mapped(f"{proc}/{pid}"):
            looked += 1
            if looked > most:
                raise UncountableError(f"had more than {most:,} files open and ranges of memory mapped")
            with contextlib.suppress(OSError):  # closed meanwhile
                status = os.stat(path) if path else None  # noqa: PTH116 - often
                if status and status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                    found[status.st_dev, status.st_ino] = status.st_blocks * 512
    return found


def _open_and_mapped(process: str) -> Iterator[str]:
    """Yield for each open file of a process, and each range of memory that it has mapped, its path in /proc.

    It is empty for a range that is of no deleted file.
    """
    with contextlib.suppress(OSError):  # it ended
        with os.scandir(f"{process}/fd") as files:
            yield from (each.path for each in files)
        if os.geteuid() == 0:
            with open(f"{process}/maps", "rb") as ranges:  # noqa: PTH123 - often
                yield from (_mapped_file(process, line) for line in ranges)


def _mapped_file(process: str, line: bytes) -> str:
    if not line.endswith(b"(deleted)\n"):
        return ""
    # The directory has the same addresses without leading zeros.
    start, end = (int(word, 16) for word in line.split(b" ", 1)[0].split(b"-"))
    return f"{process}/map_files/{start:x}-{end:x}"
