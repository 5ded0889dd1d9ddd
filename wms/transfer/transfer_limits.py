"""Limits on transfers of jobs' files, and the meter that enforces them on one transfer while its bytes move."""

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
    """The most seconds for one file, including all its replicas and tries."""
    stall_seconds: Duration = 60.0
    """If a transfer moves less than `least_rate` bytes a second for this many seconds, it is ended and tried again."""
    least_rate: Bytes = 1_000
    """The least rate of a transfer, in bytes a second, on average over `stall_seconds`."""
    tries: Many = 4
    """The most times that each replica or target is tried if its server fails."""
    pause_seconds: Duration = 1.0
    """Seconds before the second try. Each further pause is twice as long, up to 60 s."""
    job_bytes: Bytes = 1024 * GIB
    """The most bytes of all inputs of one job together, and also of all its outputs."""
    job_seconds: Duration = 86_400.0
    """The most seconds for all inputs of one job, and also for all its outputs."""
    parallel: Many = 4
    """How many files of one job are transferred at a time."""


class Meter:
    """Counts the bytes of one transfer, and stops the transfer if its file is too large or its rate too low for too long."""

    def __init__(self, limits: TransferLimits, most_bytes: int, on_bytes: Callable[[int], None]) -> None:
        """Take the limits. The file may have at most `most_bytes` bytes. `on_bytes` is called with the number of bytes whenever some have moved."""
        self.most_bytes = min(most_bytes, limits.file_bytes)
        self.moved_bytes = 0
        """How many bytes of the file are stored, including those of earlier transfers."""
        self._limits = limits
        self._on_bytes = on_bytes
        self._guard: asyncio.Timeout | None = None
        self._in_window = 0

    def begin(self, offset: int = 0) -> None:
        """Start to count, or start again. `offset` is how many bytes of the file are stored already."""
        self.moved_bytes = offset

    def moved(self, count: int) -> None:
        """Count `count` moved bytes. Raise Rejected (FILE_TOO_LARGE) if the file then has more bytes than it may have."""
        self.moved_bytes += count
        self._in_window += count
        self._on_bytes(count)
        self.check_size(self.moved_bytes)
        if self._guard is not None and self._in_window >= self._least:
            self._in_window = 0
            with contextlib.suppress(RuntimeError):  # it has struck, or is over
                self._guard.reschedule(asyncio.get_running_loop().time() + self._limits.stall_seconds)

    def check_size(self, size: int) -> None:
        """Raise Rejected (FILE_TOO_LARGE) if `size` bytes are more than the file may have."""
        if size > self.most_bytes:
            raise Rejected(TOO_LARGE, f"more than the {self.most_bytes:,} bytes expected or allowed")

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch the transfer in an `async with` block. Raise Unavailable once its rate was below `least_rate` for `stall_seconds`."""
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
