"""Copies the content of objects of sandbox stores: never more bytes than an object may have, with the SHA-256 of what was copied."""

import hashlib
from typing import Protocol

from wms.errors import Rejected
from wms.jobdesc.description import SandboxRef

CHUNK = 1024 * 1024


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many of the next bytes; none at the end."""


class Writable(Protocol):
    """A place for bytes."""

    def write(self, data: bytes, /) -> int:
        """Append these bytes."""


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
