"""The port to storages: a mover fetches and puts files of its schemes."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from wms.errors import Rejected
from wms.transfer.file_url import FileUrl
from wms.transfer.part_file import PartFile
from wms.transfer.transfer_limits import Meter

NO_FILE = "NO_SUCH_FILE"
"""The code of a file that a storage says that it does not have."""
NO_ACCESS = "ACCESS_DENIED"
"""The code of a file that a storage does not give us, or does not take."""
FULL = "STORAGE_FULL"
"""The code of a storage without space for the file."""


class Sending(msgspec.Struct, frozen=True):
    """A file on its way out."""

    source: Path
    size: int
    """Bytes."""
    mark: str
    """The suffix of temporary names, which no other attempt has: `.17.2.part`."""
    may_commit: Callable[[], bool]
    """Whether the attempt still holds its lease. It is asked right before the file gets its name."""

    def commit(self) -> None:
        """Raise Rejected (LEASE_OVER) if the file may get its name no more, since another attempt may have the job."""
        if not self.may_commit():
            raise Rejected("LEASE_OVER", "the lease ended before the file had its name")


class Mover(Protocol):
    """Moves files from and to storages of some schemes.

    Both raise Rejected if the storage says no, and Unavailable if another try may succeed.
    """

    async def fetch(self, url: FileUrl, part: PartFile, meter: Meter) -> None:
        """Fetch the file into `part`, from where it may go on. When it returns, the storage has no more bytes."""

    async def put(self, sending: Sending, url: FileUrl, meter: Meter) -> None:
        """Put the file, whole or not at all: it gets its name at the end, in place of what had it before."""
