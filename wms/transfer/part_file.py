"""A file that is arriving: its bytes so far, where they came from, and whether a transfer may go on from there."""

import os
from pathlib import Path
from typing import BinaryIO

from wms.transfer.file_url import FileUrl


class LocalDiskError(Exception):
    """The node's own disk failed or is full, which is no replica's fault."""


class PartFile:
    """A file of the node under a temporary name, to which transfers append."""

    def __init__(self, path: Path, *, is_verified: bool) -> None:
        """`is_verified`: whether a checksum will tell if parts of several replicas do not fit together."""
        self.path = path
        self.validator = ""
        """The strong ETag of the content that the bytes belong to; empty if it is not known."""
        self._is_verified = is_verified
        self._origins: set[str] = set()

    @property
    def size(self) -> int:
        """The bytes so far."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def is_mixed(self) -> bool:
        """Whether its bytes came from several replicas."""
        return len(self._origins) > 1

    def offset_for(self, url: FileUrl) -> int:
        """Return the byte from which a replica may go on: 0 unless the rest is bound to fit, or will be verified."""
        if not self.size:
            return 0
        is_same = self._origins == {url.text} and bool(self.validator)
        return self.size if is_same or self._is_verified else 0

    def open(self, url: FileUrl, offset: int, validator: str = "") -> BinaryIO:
        """Open the file to append bytes of a replica from `offset` on; what lies behind is cut off.

        Raises LocalDiskError if the disk refuses.
        """
        if offset == 0:
            self._origins.clear()
        self._origins.add(url.text)
        self.validator = validator
        try:
            file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600), "wb", 0)
            file.truncate(offset)
            file.seek(offset)
        except OSError as error:
            raise _local(error) from None
        return file

    def append(self, file: BinaryIO, data: bytes | memoryview) -> None:
        """Write all of the bytes to the opened file; blocking. Raises LocalDiskError if the disk refuses."""
        left = memoryview(data)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            raise _local(error) from None

    def adopt(self, url: FileUrl) -> None:
        """Note that a program of its own has written all bytes of the file, from this replica."""
        self._origins = {url.text}

    def discard(self) -> None:
        """Remove the bytes so far."""
        self.path.unlink(missing_ok=True)
        self._origins.clear()
        self.validator = ""


def _local(error: OSError) -> LocalDiskError:
    return LocalDiskError(f"the node's disk: {error.strerror}")
