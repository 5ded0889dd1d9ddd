"""Directories for Unix sockets: closed to all but us, with paths short enough for the kernel."""

import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

from wms.errors import Rejected

PATH_LIMIT: Final = 107
"""Bytes that the path of a socket may have on Linux."""
NAME_ROOM: Final = 28
"""Of which a socket's own name, with its separator, takes at most so many."""
_POINTER = "sockets"


def socket_directory(data_dir: Path) -> Path:
    """Return a directory for sockets of the server in `data_dir`, mode 0700; it is the same at each start.

    It is below `data_dir` where the path is short enough, else in the directory for temporary files, where a file in `data_dir`
    remembers it. Raises Rejected if somebody else has changed it.
    """
    own = data_dir / "run"
    if len(os.fsencode(own)) + NAME_ROOM <= PATH_LIMIT:
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        own.chmod(0o700)
        return own
    return _known(data_dir / _POINTER) or _fresh(data_dir / _POINTER)


def remove_socket_directory(data_dir: Path) -> None:
    """Remove the directory if it is not below `data_dir`."""
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
    # As root we may have given it to whom a server runs as.
    ours = os.geteuid() in (0, found.st_uid)
    if not stat.S_ISDIR(found.st_mode) or not ours or found.st_mode & 0o077:
        raise Rejected(
            "SOCKETS_EXPOSED", f"others may use the sockets in {place}", f"remove it, and {pointer}"
        )
    return place


def _fresh(pointer: Path) -> Path:
    # Its name cannot be guessed, so that nobody has one ready there for us.
    place = Path(tempfile.mkdtemp(prefix="wms-"))
    pointer.write_text(f"{place}\n", "utf-8")
    return place
