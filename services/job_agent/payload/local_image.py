"""Images that are files or directories of the node: which of them payloads may use, and of what kind they are."""

import os
import stat
import tarfile
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import BinaryIO, Final

from wms.errors import Rejected

MEMBERS_READ: Final = 1_000
"""How many members of an archive are looked at, at most."""
MEMBER_BYTES: Final = 2**50
"""The greatest size of a member that an archive may say."""
_PACKED = ((b"SIF_MAGIC", 32), (b"hsqs", 0))
"""What files of Apptainer hold, and at which position: a SIF, a squashfs."""


class ImageKind(Enum):
    """The kind of a local image. For archives the value is the name of the transport by which programs read them."""

    DIRECTORY = "directory"
    PACKED = "packed"
    """A file of Apptainer: a SIF, or a squashfs."""
    DOCKER_ARCHIVE = "docker-archive"
    OCI_ARCHIVE = "oci-archive"


def kind_of(path: str) -> ImageKind:
    """Return the kind of the image at this path. A file that is none of the kinds counts as a Docker archive. Blocking.

    Raise Rejected if the file cannot be read.
    """
    if Path(path).is_dir():
        return ImageKind.DIRECTORY
    try:
        with Path(path).open("rb") as file:
            head = file.read(64)
            if any(head[at:].startswith(sign) for sign, at in _PACKED):
                return ImageKind.PACKED
            file.seek(0)
            is_oci = any(name.removeprefix("./") == "oci-layout" for name in _members(file))
    except OSError as error:
        raise Rejected("NO_IMAGE", f"the image {path} cannot be read: {error.strerror}") from error
    return ImageKind.OCI_ARCHIVE if is_oci else ImageKind.DOCKER_ARCHIVE


def _members(file: BinaryIO) -> Iterator[str]:
    """Yield the names of the first members of an archive (tar); nothing if the file is none. Only headers are read.

    The library's reader would read a header of any size that a hostile archive says, and unpack what is compressed.
    """
    for _ in range(MEMBERS_READ):
        try:
            member = tarfile.TarInfo.frombuf(file.read(tarfile.BLOCKSIZE), "utf-8", "surrogateescape")
        except tarfile.TarError:
            return
        if not 0 <= member.size <= MEMBER_BYTES:
            return
        yield member.name
        file.seek(-(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE, os.SEEK_CUR)


def image_path(image: str, hidden: Iterable[str]) -> str:
    """Return the path of a local image without symbolic links. `hidden` are the directories that are hidden from payloads. Blocking.

    Raise Rejected if not every user may read the image, or if it lies in a hidden directory or contains one.
    """
    path = os.path.realpath(image)
    for each in hidden:
        if _is_below(path, each) or _is_below(each, path):
            raise Rejected("NO_IMAGE", f"{image} is no image: the node keeps it from payloads")
    if not _is_public(Path(path)):
        raise Rejected("NO_IMAGE", f"there is no image {image} that every user of the node may read")
    return path


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith(above.rstrip("/") + "/")


def _is_public(path: Path) -> bool:
    """Return whether every user may read this file or directory and pass the directories above it. False if it does not exist."""
    try:
        modes = [each.stat().st_mode for each in (path, *path.parents)]
    except OSError:
        return False
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(modes[0]) else 0)
    is_file = stat.S_ISDIR(modes[0]) or stat.S_ISREG(modes[0])
    return is_file and modes[0] & wanted == wanted and all(each & stat.S_IXOTH for each in modes[1:])
