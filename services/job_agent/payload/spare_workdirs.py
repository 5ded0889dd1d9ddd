"""Directories that payloads left as they found them, kept for the next.

To make and to remove a short job's directories costs a node more than all the rest of the job: ext4 looks, for each that
it makes, past all that were removed within the last seconds.
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
    """Directories of one shape, `root/.spare/N` with these names below each; all of it blocking, for any thread."""

    def __init__(self, root: Path, names: tuple[str, ...]) -> None:
        self._place = root / ".spare"
        self._names = names
        self._kept: deque[Path] = deque()
        self._numbers = count(1)

    def make(self, path: Path) -> None:
        """Have such a directory there, new or as good as new; nothing may be there yet."""
        try:
            self._kept.popleft().rename(path)
        except (IndexError, FileNotFoundError):
            path.mkdir(mode=MODE)
            for name in self._names:
                (path / name).mkdir(mode=MODE)

    def keep(self, path: Path) -> bool:
        """Take it back if it is as it was made; return whether it was."""
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
        """Remove them all."""
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
    """Return the extended attributes that its owner may have given it, access lists among them."""
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return [name for name in names if name.startswith(("user.", "system."))]
    except OSError:
        return []
