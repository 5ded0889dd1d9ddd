"""A file that is being fetched: the bytes received so far, the replica that they came from, and whether another transfer may continue it."""

import os
from pathlib import Path
from typing import BinaryIO

from wms.transfer.file_url import FileUrl


class LocalDiskError(Exception):
    """The node's own disk failed or is full. Another replica would not help."""


class PartFile:
    """A file of the node under a temporary name, to which transfers append the bytes that they fetch."""

    def __init__(self, path: Path, *, is_verified: bool) -> None:
        """Take the temporary path. `is_verified` says whether the file has a checksum, which detects bytes of different replicas that do not fit."""
        self.path = path
        self.validator = ""
        """The strong ETag of the content that the received bytes belong to; empty if it is not known."""
        self._is_verified = is_verified
        self._origins: set[str] = set()

    @property
    def size(self) -> int:
        """How many bytes have come; 0 if the file does not exist."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def is_mixed(self) -> bool:
        """Whether bytes came from more than one replica."""
        return len(self._origins) > 1

    def offset_for(self, url: FileUrl) -> int:
        """Return the offset from which the replica at this URL may continue. It is 0 if its content may not fit the received bytes."""
        if not self.size:
            return 0
        is_same = self._origins == {url.text} and bool(self.validator)
        return self.size if is_same or self._is_verified else 0

    def open(self, url: FileUrl, offset: int, validator: str = "") -> BinaryIO:
        """Open the file to write bytes of the replica at this URL from `offset` on. Bytes after it are cut off.

        `validator` is the content's strong ETag, if known. Raise LocalDiskError if the disk fails.
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
        """Write all of `data` to the opened file. The call blocks. Raise LocalDiskError if the disk fails."""
        left = memoryview(data)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            raise _local(error) from None

    def adopt(self, url: FileUrl) -> None:
        """Store that all bytes of the file came from the replica at this URL, written by an external program."""
        self._origins = {url.text}

    def discard(self) -> None:
        """Remove the file, and forget where its bytes came from. A missing file is no error."""
        self.path.unlink(missing_ok=True)
        self._origins.clear()
        self.validator = ""


def _local(error: OSError) -> LocalDiskError:
    return LocalDiskError(f"the node's disk: {error.strerror}")
