"""Stored archives that are being sent. All readers of one share one open file: the object itself, or one copy of an object of S3.

The file has no name outside the store, so nothing is left of it once it is closed. It stays open for some seconds after its last reader, since
archives are also read in pieces.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import BinaryIO, Final

from services.gateway.shared_room import SharedRoom
from wms.transfer import SandboxStore

LINGER_SECONDS: Final = 20.0
"""Seconds for which an archive stays open without readers."""
LINGERING: Final = 100
"""The most archives that stay open without readers."""


class OpenArchive:
    """One archive whose bytes were verified when it was opened."""

    def __init__(self, file: BinaryIO, holder: str) -> None:
        """Keep an open file. `holder` is who opened it, and has the bytes of a copy (`SharedRoom.take`)."""
        self._file = file
        self.holder = holder
        self.size = os.fstat(file.fileno()).st_size

    def piece(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes from `offset` on. It blocks, and any number of threads may call it at once."""
        return os.pread(self._file.fileno(), count, offset)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class OpenArchives:
    """The archives of a store that are open, each once."""

    def __init__(self, store: SandboxStore, room: SharedRoom) -> None:
        self._store = store
        self._room = room
        self._open: dict[str, asyncio.Task[OpenArchive]] = {}
        self._readers: dict[str, int] = {}
        self._lingering: dict[str, asyncio.TimerHandle] = {}
        """The archives without readers, the one that had none for longest first."""
        room.free_some = self._close_oldest

    def __len__(self) -> int:
        return len(self._open)

    @contextlib.asynccontextmanager
    async def reading(self, digest: str, holder: str) -> AsyncIterator[OpenArchive]:
        """Yield the archive with this digest, for an `async with` block. The errors are those of `SandboxStore.opened` and `SharedRoom.take`."""
        if (timer := self._lingering.pop(digest, None)) is not None:
            timer.cancel()
        self._readers[digest] = self._readers.get(digest, 0) + 1
        if digest not in self._open:
            self._open[digest] = asyncio.create_task(self._opened(digest, holder), name="open an archive")
        opening = self._open[digest]
        try:
            # A reader who goes away does not take the archive from the others.
            yield await asyncio.shield(opening)
        finally:
            self._readers[digest] -= 1
            if not self._readers[digest]:
                del self._readers[digest]
                self._linger(digest, opening)

    async def _opened(self, digest: str, holder: str) -> OpenArchive:
        taken = self._store.max_object if self._store.opens_copies else 0
        self._room.take(holder, taken)
        try:
            archive = OpenArchive(await self._store.opened(digest), holder)
        except BaseException:
            self._room.give_back(holder, taken)
            raise
        if taken:
            self._room.give_back(holder, taken - archive.size)
        return archive

    def _linger(self, digest: str, opening: "asyncio.Task[OpenArchive]") -> None:
        if opening.done() and (opening.cancelled() or opening.exception() is not None):
            del self._open[digest]
            return
        later = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._close, digest)
        self._lingering[digest] = later
        if len(self._lingering) > LINGERING:
            self._close_oldest()

    def _close_oldest(self) -> bool:
        oldest = next(iter(self._lingering), None)
        if oldest is None:
            return False
        self._close(oldest)
        return True

    def _close(self, digest: str) -> None:
        self._lingering.pop(digest).cancel()
        opening = self._open.pop(digest)
        if opening.done():
            self._closed(opening)
        else:
            opening.add_done_callback(self._closed)

    def _closed(self, opening: "asyncio.Task[OpenArchive]") -> None:
        if not opening.cancelled() and opening.exception() is None:
            archive = opening.result()
            archive.close()
            if self._store.opens_copies:
                self._room.give_back(archive.holder, archive.size)
