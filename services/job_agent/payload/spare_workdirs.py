"""Stores directories that payloads left as they were made, to be used again for the next payloads.

Nothing here looks into what a payload wrote: whether it wrote something is found out in its sandbox. A spare directory is for
jobs of the same owner alone. For a directory may carry more than is seen: inode attributes, and watches of inotify, whose
descriptors another payload may hold.

Making and removing the directories of a short job costs a node more than the rest of the job. For each new directory, ext4
searches past all that were removed within the last seconds.
"""

import contextlib
import secrets
import threading
from collections import deque
from itertools import count
from pathlib import Path

LIMIT = 64
MODE = 0o700


class SpareWorkdirs:
    """Unused payload directories below `root/.spare`, each with the empty subdirectories `names`.

    The methods block, and may be called in any thread.
    """

    def __init__(self, root: Path, names: tuple[str, ...]) -> None:
        self._place = root / ".spare"
        self._names = names
        self._kept: deque[tuple[str, Path]] = deque()
        self._numbers = count(1)
        self._lock = threading.Lock()

    def make(self, path: Path, owner: str) -> None:
        """Make the directory `path` with its subdirectories for a job of `owner`, by renaming a spare one of his if there is one.

        `path` must not exist. Raise OSError if the disk fails.
        """
        try:
            self._taken(owner).rename(path)
        except (StopIteration, FileNotFoundError):
            path.mkdir(mode=MODE)
            for name in self._names:
                (path / name).mkdir(mode=MODE)

    def _taken(self, owner: str) -> Path:
        with self._lock:
            found = next(each for each in self._kept if each[0] == owner)
            self._kept.remove(found)
        return found[1]

    def keep(self, path: Path, owner: str) -> bool:
        """Move the directory `path` of a job of `owner`, which is as it was made, to the spare ones and return True.

        With more than 64 spare ones, the oldest is deleted. Return False, and leave `path`, if the disk fails.
        """
        spare = self._place / str(next(self._numbers))
        try:
            self._place.mkdir(mode=MODE, exist_ok=True)
            path.rename(spare)
        except OSError:
            return False
        with self._lock:
            self._kept.append((owner, spare))
        self._remove_beyond(LIMIT)
        return True

    def _remove_beyond(self, limit: int) -> None:
        with self._lock:
            old = [self._kept.popleft()[1] for _ in range(len(self._kept) - limit)]
        for each in old:
            self.remove(each)

    def remove(self, path: Path) -> bool:
        """Delete the directory `path`. Return False if there is something in its subdirectories."""
        try:
            for name in self._names:
                with contextlib.suppress(FileNotFoundError):
                    (path / name).rmdir()
            path.rmdir()
        except OSError:
            return False
        return True

    def aside(self, path: Path) -> Path:
        """Move the directory `path` away from its name, and return where it is now. Raise OSError if the disk fails."""
        self._place.mkdir(mode=MODE, exist_ok=True)
        place = self._place / f"{path.name}.{secrets.token_hex(4)}"
        path.rename(place)
        return place

    def clear(self) -> None:
        """Delete all spare directories."""
        self._remove_beyond(0)
        with contextlib.suppress(OSError):
            self._place.rmdir()
