"""The interface of movers, which fetch and put files. Each mover handles storages of some URL schemes."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from wms.errors import Rejected
from wms.transfer.file_url import FileUrl
from wms.transfer.part_file import PartFile
from wms.transfer.transfer_limits import Meter

NO_FILE = "NO_SUCH_FILE"
"""The error code for a file that the storage does not have."""
NO_ACCESS = "ACCESS_DENIED"
"""The error code for a file that the storage does not let us read or write."""
FULL = "STORAGE_FULL"
"""The error code for a storage without space for the file."""


class OutgoingFile(msgspec.Struct, frozen=True):
    """An output file that is being put to a target."""

    source: Path
    size: int
    """The size of the file in bytes."""
    mark: str
    """A suffix for temporary names, such as `.17.2.part`. No other attempt of any job uses it."""
    may_commit: Callable[[], bool]
    """Returns whether the job's attempt still holds its lease. It is called just before the file gets its final name."""

    def commit(self) -> None:
        """Check the lease just before the file gets its final name.

        Raise Rejected (LEASE_OVER) if the attempt no longer holds its lease, so that the file must not get that name.
        """
        if not self.may_commit():
            raise Rejected("LEASE_OVER", "the lease ended before the file had its name")


class Mover(Protocol):
    """Moves files from and to storages of some URL schemes.

    Both methods raise Rejected if the storage refuses, and Unavailable if another try may succeed.
    """

    async def fetch(self, url: FileUrl, part: PartFile, meter: Meter) -> None:
        """Fetch the file at the URL into `part`. If the bytes that `part` has still fit, the transfer continues after them.

        On return `part` has the whole file.
        """

    async def put(self, sending: OutgoingFile, url: FileUrl, meter: Meter) -> None:
        """Put a file to the URL, completely or not at all. It gets its final name at the end, and replaces a file with that name."""
