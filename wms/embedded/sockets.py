"""Directories for Unix sockets: closed to other users, with paths short enough for the kernel's limit."""

import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

from wms.errors import Rejected

PATH_LIMIT: Final = 107
"""The greatest length in bytes of a Unix socket's path on Linux."""
NAME_ROOM: Final = 28
"""The bytes of `PATH_LIMIT` that are kept free for a slash and the socket's file name."""
_POINTER = "sockets"
_SHORT_DIRECTORIES: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - only for a fresh directory of mode 0700


def socket_directory(data_dir: Path) -> Path:
    """Return the directory of mode 0700 for the sockets of the server in `data_dir`; it is created if missing.

    It is below `data_dir` if the path is short enough. Otherwise it is in a directory for temporary files, and a file in `data_dir` holds
    its path. So it stays the same until it is removed. Raise Rejected if other users may use the directory, or no path is short enough.
    """
    own = data_dir / "run"
    if _is_short(own):
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        own.chmod(0o700)
        return own
    return _known(data_dir / _POINTER) or _fresh(data_dir / _POINTER)


def remove_socket_directory(data_dir: Path) -> None:
    """Remove the socket directory of the server in `data_dir`, if it is outside `data_dir`; otherwise do nothing."""
    place = _known(data_dir / _POINTER)
    if place is not None:
        shutil.rmtree(place, ignore_errors=True)
        (data_dir / _POINTER).unlink(missing_ok=True)


def _known(pointer: Path) -> Path | None:
    try:
        place = Path(pointer.read_text("utf-8").strip())
        found = place.lstat()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    # If this process is root, the directory may belong to the user that runs the server.
    ours = os.geteuid() in (0, found.st_uid)
    if not stat.S_ISDIR(found.st_mode) or not ours or found.st_mode & 0o077:
        raise Rejected(
            "SOCKETS_EXPOSED", f"others may use the sockets in {place}", f"remove it, and {pointer}"
        )
    return place


def _fresh(pointer: Path) -> Path:
    # Its name cannot be guessed, so nobody can have made a directory of that name.
    place = Path(tempfile.mkdtemp(prefix="wms-", dir=_temporary_directory()))
    pointer.write_text(f"{place}\n", "utf-8")
    return place


def _temporary_directory() -> str:
    """Return a directory for temporary files whose path is short enough for a socket, preferably the system's default.

    Raise Rejected if there is none.
    """
    for each in (tempfile.gettempdir(), *_SHORT_DIRECTORIES):
        if _is_short(Path(each, "wms-12345678")) and os.access(each, os.W_OK | os.X_OK):
            return each
    raise Rejected("PATH_TOO_LONG", "no directory is short enough for sockets", "set TMPDIR to a short path")


def _is_short(directory: Path) -> bool:
    return len(os.fsencode(directory)) + NAME_ROOM <= PATH_LIMIT
