"""Stores directories that payloads left unchanged, to be used again for the next payloads.

Making and removing the directories of a short job costs a node more than the rest of the job. For each new directory, ext4
searches past all that were removed within the last seconds.
"""

import os
import shutil
import stat
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
        self._kept: deque[Path] = deque()
        self._numbers = count(1)

    def make(self, path: Path) -> None:
        """Make the directory `path` with its subdirectories, by renaming a spare one if there is one. `path` must not exist.

        Raise OSError if the disk fails.
        """
        try:
            self._kept.popleft().rename(path)
        except (IndexError, FileNotFoundError):
            path.mkdir(mode=MODE)
            for name in self._names:
                (path / name).mkdir(mode=MODE)

    def keep(self, path: Path) -> bool:
        """Move the directory `path` to the spare ones and return True.

        Return False, and leave it, if its payload changed it, if there are 64 spare ones already, or if the disk fails.
        """
        spare = self._place / str(next(self._numbers))
        try:
            if len(self._kept) >= LIMIT or not self._untouched(path):
                return False
            self._place.mkdir(mode=MODE, exist_ok=True)
            path.rename(spare)
        except OSError:
            return False
        self._kept.append(spare)
        return True

    def clear(self) -> None:
        """Delete all spare directories."""
        self._kept.clear()
        shutil.rmtree(self._place, ignore_errors=True)

    def _untouched(self, path: Path) -> bool:
        places = [path, *(path / name for name in self._names)]
        found = [os.listdir(place) for place in places]  # noqa: PTH208 - the names alone, in one call
        return sorted(found[0]) == sorted(self._names) and not any(found[1:]) and all(map(_as_made, places))


def _as_made(path: Path) -> bool:
    mode = path.lstat().st_mode
    # The bit that gives files a group comes from the parent directory.
    return stat.S_ISDIR(mode) and stat.S_IMODE(mode) & ~stat.S_ISGID == MODE and not _attributes(path)


def _attributes(path: Path) -> list[str]:
    """Return the names of a path's extended attributes that its owner may have set, including access control lists.

    Empty if the file system has no such attributes.
    """
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return [name for name in names if name.startswith(("user.", "system."))]
    except OSError:
        return []
