"""Moves the output files of an ended payload out of its reach, by hard links, before they are sent.

Symbolic links that the payload made cannot lead to files outside of its directory.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from wms.errors import Rejected


def link_out(work: Path, names: Iterable[str], to: Path, owner: int | None) -> dict[str, Path]:
    """Make hard links to the named files below `work` in the new directory `to`. Return the links' paths by name. Blocking.

    Missing files are left out. Raise Rejected if a file is outside of `work`, is not a regular file, or belongs to a user
    other than `owner`. None: any owner is accepted.
    """
    to.mkdir(mode=0o700)
    return {name: path for n, name in enumerate(names) if _taken(work, name, path := to / str(n), owner)}


def _taken(work: Path, name: str, to: Path, owner: int | None) -> bool:
    """Make the hard link `to` to the file `name` below `work` and return True; False if there is no such file.

    Raise Rejected if the file is outside of `work`, is not a regular file, cannot be read, or belongs to a user other than
    `owner`.
    """
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
    """Make the captured output of a payload also appear below `work` under `name`, as its job description wants. Blocking.

    `captured` is the file with the output; None: the new file is empty. `owner` is the user and group of the new file; None:
    unchanged. If a file has that name, the name leads out of `work`, or the disk fails, nothing happens.
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
    """Yield a descriptor of the directory that contains the file `relative` below `base`, for a `with` block.

    Symbolic links are not followed. If `make` is True, missing directories are made. Raise OSError if the directory cannot be
    opened.
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
