"""Takes the output files of an ended payload out of its reach before they are sent.

Links that the payload made cannot lead to files outside of its directory.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from wms.errors import Rejected


def link_out(work: Path, names: Iterable[str], to: Path, owner: int | None) -> dict[str, Path]:
    """Make hard links to the named files below `work` in the new directory `to`. Return their paths by name. Blocking.

    Missing files are left out. Raise Rejected for a file outside of `work`, for what is no regular file, and for another user's
    file. `owner` is the user to whom files must belong; None: anyone.
    """
    to.mkdir(mode=0o700)
    return {name: path for n, name in enumerate(names) if _taken(work, name, path := to / str(n), owner)}


def _taken(work: Path, name: str, to: Path, owner: int | None) -> bool:
    """Make a hard link in `to` to the file `name` below `work`. Return False if there is no such file."""
    base = os.path.realpath(work)
    real = Path(os.path.realpath(work / name))
    if not real.is_relative_to(base):
        raise Rejected("BAD_OUTPUT", f"the output {name!r} leads out of the job's directory")
    try:
        with _parent(Path(base), real.relative_to(base)) as above:
            os.link(real.name, to, src_dir_fd=above, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise Rejected("BAD_OUTPUT", f"the output {name!r} cannot be read: {error.strerror}") from None
    _judge(name, to.lstat(), owner)
    return True


def _judge(name: str, found: os.stat_result, owner: int | None) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Rejected("BAD_OUTPUT", f"the output {name!r} is not a regular file")
    if owner is not None and found.st_uid != owner:
        raise Rejected("BAD_OUTPUT", f"the output {name!r} is another user's file")


def name_output(work: Path, name: str, captured: Path | None, owner: tuple[int, int] | None) -> None:
    """Give the captured output of a payload the file name `name` below `work` that its job wants. Blocking.

    `captured` is the file with the output; None: it printed nothing. `owner` is the user and group of the new file. Nothing
    happens if a file has that name or it leads out of `work`.
    """
    relative = Path(name)
    if relative.is_absolute() or ".." in relative.parts:
        return
    with suppress(OSError), _parent(work, relative, make=True) as above:
        if captured is None:
            os.close(os.open(relative.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=above))
        else:
            os.link(captured, relative.name, dst_dir_fd=above, follow_symlinks=False)
        if owner is not None:
            os.chown(relative.name, *owner, dir_fd=above, follow_symlinks=False)


@contextmanager
def _parent(base: Path, relative: Path, *, make: bool = False) -> Iterator[int]:
    """Open the directory above a file below `base`, without following links, and yield its descriptor.

    If `make` is True, missing directories are made.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with ExitStack() as opened:
        above = os.open(base, flags)
        opened.callback(os.close, above)
        for part in relative.parts[:-1]:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=above)
            above = os.open(part, flags, dir_fd=above)
            opened.callback(os.close, above)
        yield above
