"""Objects of sandbox stores: their names are the SHA-256 of their bytes, and copies verify both size and digest."""

import hashlib
import re
from typing import Protocol

import msgspec

from wms.errors import Rejected, Unavailable
from wms.jobdesc.description import SandboxRef

MAX_OBJECT = 100 * 1024 * 1024
"""How many bytes an object may have, unless the store is opened with another limit."""
CHUNK = 1024 * 1024
"""How many bytes are read from a file at once."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


class DeletedObjects(msgspec.Struct, frozen=True, kw_only=True):
    """What `delete_unreferenced` deleted from the store."""

    objects: int = 0
    """How many objects were deleted."""
    bytes: int = 0
    """How many bytes the deleted objects had together."""
    leftovers: int = 0
    """How many unfinished files of dead writers, and corrupt objects, were deleted."""


class TornSandbox(Unavailable):
    """The bytes of a stored object do not match its name. It was set aside; storing the content again repairs it."""


def digest_of(data: bytes) -> str:
    """Return the name under which the store keeps these bytes: their SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def checked_digest(sha256: str) -> str:
    """Return `sha256` if it has the form of an object's name. Raise Rejected (BAD_SANDBOX_ID) if it does not."""
    if not _DIGEST.fullmatch(sha256):
        raise Rejected("BAD_SANDBOX_ID", f"not a SHA-256 in lower-case hexadecimal: {sha256!r}")
    return sha256


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` of the next bytes; none at the end."""


class Writable(Protocol):
    """A place for bytes."""

    def write(self, data: bytes, /) -> int:
        """Append `data`, and return the number of bytes written."""


def checked_size(size: int, limit: int) -> None:
    """Raise Rejected if `size` bytes are more than `limit`."""
    if size > limit:
        raise Rejected(
            "SANDBOX_TOO_LARGE",
            f"a sandbox of at least {size} bytes is over the store's limit of {limit} bytes",
            "put large files where the job can fetch them by itself",
        )


def copied(source: Readable, target: Writable | None, limit: int) -> SandboxRef:
    """Copy all bytes, or only read them if there is no `target`; return their reference. Rejected: they are more than `limit`."""
    hasher = hashlib.sha256()
    size = 0
    while chunk := source.read(min(CHUNK, limit + 1 - size)):
        size += len(chunk)
        checked_size(size, limit)
        hasher.update(chunk)
        if target is not None:
            target.write(chunk)
    return SandboxRef(sha256=hasher.hexdigest(), size=size)
