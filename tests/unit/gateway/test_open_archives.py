"""However many read an archive, it is opened once, and closed once nobody needs it."""

import asyncio
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from services.gateway import open_archives
from services.gateway.open_archives import OpenArchives
from services.gateway.shared_room import MEGABYTE, SharedRoom
from wms.errors import Rejected, Unavailable
from wms.transfer import digest_of
from wms.transfer.directory_store import DirectoryStore

DATA = os.urandom(100_000)


class CountingStore(DirectoryStore):
    """A directory that counts how often an object is opened; it may do as if it opened copies, as S3 does."""

    copies = False
    count = 0

    @property
    def opens_copies(self) -> bool:
        return self.copies

    async def opened(self, sha256: str) -> BinaryIO:
        self.count += 1
        return await super().opened(sha256)


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path / "store", max_object=len(DATA))


def archives(store: CountingStore) -> OpenArchives:
    return OpenArchives(store, SharedRoom(4_096 * MEGABYTE, "archives"))


async def test_readers_at_once_share_one_file(store: CountingStore) -> None:
    kept = await store.put(DATA)
    opened = archives(store)
    together = asyncio.Barrier(40)

    async def read(n: int) -> bytes:
        async with opened.reading(kept.sha256, "alice") as archive:
            await together.wait()
            assert archive.size == len(DATA)
            return await asyncio.to_thread(archive.piece, n * 100, 100)

    pieces = await asyncio.gather(*(read(n) for n in range(40)))
    assert pieces == [DATA[n * 100 : n * 100 + 100] for n in range(40)]
    assert (store.count, len(opened)) == (1, 1)


async def test_it_stays_open_for_a_while_and_is_closed(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_archives, "LINGERING", 1)
    opened = archives(store)
    first, second = await store.put(b"1"), await store.put(b"2")
    for kept in (first, first, second, second, first):
        async with opened.reading(kept.sha256, "alice") as archive:
            assert archive.size == 1
    assert (store.count, len(opened)) == (3, 1), "opened again after it was closed for the other"
    assert opened._close_oldest()
    assert not opened._close_oldest()
    with pytest.raises(ValueError, match="closed"):
        archive.piece(0, 1)


async def test_who_goes_away_takes_nothing_from_the_others(store: CountingStore) -> None:
    kept = await store.put(DATA)
    opened = archives(store)

    async def read() -> int:
        async with opened.reading(kept.sha256, "alice") as archive:
            return archive.size

    gone, stays = asyncio.create_task(read()), asyncio.create_task(read())
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays == len(DATA)


async def test_copies_are_held_to_the_temporary_directory(store: CountingStore) -> None:
    store.copies = True
    opened = archives(store)
    room = opened._room
    room.left = 120_000
    first, second, third = [await store.put(each) for each in (b"1" * 15_000, b"2" * 15_000, b"3")]
    async with opened.reading(first.sha256, "alice"):
        """A copy of which the size is known is held with its size."""
    assert room.left == 105_000
    async with opened.reading(second.sha256, "bob"):
        assert len(opened) == 2
        # There is no room for one more of any size, but for the first, which nobody reads.
        async with opened.reading(third.sha256, "carol"):
            assert len(opened) == 2
        with room.held("dave", 105_000), pytest.raises(Unavailable):
            async with opened.reading(first.sha256, "alice"):
                """It has no room."""
    assert opened._close_oldest()
    assert room.left == 120_000


async def test_what_cannot_be_opened_is_tried_anew(store: CountingStore) -> None:
    opened = archives(store)
    name = digest_of(DATA)
    for _ in range(2):
        with pytest.raises(Rejected, match="NO_SUCH_SANDBOX"):
            async with opened.reading(name, "alice"):
                """There is none."""
    await store.put(DATA)
    async with opened.reading(name, "alice") as archive:
        assert archive.size == len(DATA)
