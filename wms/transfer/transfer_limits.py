"""Limits on transfers of jobs' files, and the meter that holds one transfer to them while its bytes move."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import Bytes
from wms.errors import Rejected, Unavailable

GIB = 1024**3
Many: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100)]
Duration: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=604_800)]
TOO_LARGE = "FILE_TOO_LARGE"
"""The error code for a file with more bytes than it may have."""


class TransferLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits on the transfers of one job's files by URL."""

    file_bytes: Bytes = 100 * GIB
    """The most bytes that one file may have."""
    file_seconds: Duration = 14_400.0
    """The most seconds for one file, all its replicas and tries included."""
    stall_seconds: Duration = 60.0
    """A transfer that moves less than `least_rate` bytes a second for so many seconds is given up for another try."""
    least_rate: Bytes = 1_000
    """Bytes a second that a transfer must move, on the average of `stall_seconds`."""
    tries: Many = 4
    """How often each replica or target is tried while its server fails."""
    pause_seconds: Duration = 1.0
    """Seconds before the second try. Each further pause is twice as long, up to 60 s."""
    job_bytes: Bytes = 1024 * GIB
    """The most bytes that the inputs of one job may have together, and its outputs."""
    job_seconds: Duration = 86_400.0
    """The most seconds for all inputs of one job, and for all its outputs."""
    parallel: Many = 4
    """How many files of one job are transferred at a time."""


class Meter:
    """Counts the bytes of one transfer, and stops it if they are too many, or too few for too long."""

    def __init__(self, limits: TransferLimits, most_bytes: int, on_bytes: Callable[[int], None]) -> None:
        """Take the limits. The file may have `most_bytes` bytes; `on_bytes` is called with the number of bytes as they move."""
        self.most_bytes = min(most_bytes, limits.file_bytes)
        self.moved_bytes = 0
        """How many bytes of the file are there, those before the transfer's beginning included."""
        self._limits = limits
        self._on_bytes = on_bytes
        self._guard: asyncio.Timeout | None = None
        self._in_window = 0

    def begin(self, offset: int = 0) -> None:
        """Begin, or begin anew, to count, after the first `offset` bytes of the file."""
        self.moved_bytes = offset

    def moved(self, count: int) -> None:
        """Count `count` bytes that moved. Raise Rejected (FILE_TOO_LARGE) when there are too many."""
        self.moved_bytes += count
        self._in_window += count
        self._on_bytes(count)
        self.check_size(self.moved_bytes)
        if self._guard is not None and self._in_window >= self._least:
            self._in_window = 0
            with contextlib.suppress(RuntimeError):  # it has struck, or is over
                self._guard.reschedule(asyncio.get_running_loop().time() + self._limits.stall_seconds)

    def check_size(self, size: int) -> None:
        """Raise Rejected (FILE_TOO_LARGE) if a file of `size` bytes may not be transferred."""
        if size > self.most_bytes:
            raise Rejected(TOO_LARGE, f"more than the {self.most_bytes:,} bytes expected or allowed")

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch the transfer in an `async with` block. Raise Unavailable once it has moved too little for `stall_seconds`."""
        seconds = self._limits.stall_seconds
        try:
            async with asyncio.timeout(seconds) as self._guard:
                yield
        except TimeoutError:
            raise Unavailable(f"too slow: under {self._limits.least_rate:,} B/s for {seconds:g} s") from None
        finally:
            self._guard = None

    @property
    def _least(self) -> float:
        return max(1.0, self._limits.least_rate * self._limits.stall_seconds)
