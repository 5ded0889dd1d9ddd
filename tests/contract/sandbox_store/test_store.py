"""What every sandbox store does: whole or absent, verified, bounded, collected."""

import asyncio
import os
from pathlib import Path

import aiohttp
import pytest

from tests.contract.sandbox_store.stores import StoreGround, place_of
from wms.errors import Rejected
from wms.ids import AttemptId, Epoch, JobId
from wms.transfer import SandboxStore, TornSandbox, digest_of, download, upload


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize("size", [0, 1, 3_000_000, 20_000_000])
async def test_put_then_fetch_gives_the_same_bytes(
    ground: StoreGround, tmp_path: Path, size: int, *, as_file: bool
) -> None:
    data = os.urandom(size)
    source = tmp_path / "source"
    source.write_bytes(data)
    ref = await ground.open().put(source if as_file else data)
    assert (ref.sha256, ref.size) == (digest_of(data), size)
    store = ground.open()
    assert await store.exists(ref.sha256)
    assert await store.fetch(ref.sha256, tmp_path / "copy") == ref
    assert (tmp_path / "copy").read_bytes() == data
    assert ground.names() == [place_of(ref.sha256)]
    assert {each.name for each in tmp_path.iterdir()} <= {"store", "source", "copy"}


async def test_an_opened_object_is_verified_and_leaves_nothing(
    ground: StoreGround, store: SandboxStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    data = os.urandom(20_000_000)
    ref = await store.put(data)
    file = await store.opened(ref.sha256)
    with file:
        assert file.read() == data
        assert set(tmp_path.iterdir()) == before
    ground.damage(ref.sha256, b"half")
    with pytest.raises(TornSandbox, match=ref.sha256):
        await store.opened(ref.sha256)
    with pytest.raises(Rejected, match="NO_SUCH_SANDBOX"):
        await store.opened(ref.sha256)


async def test_archives_go_in_and_come_out(store: SandboxStore, tmp_path: Path) -> None:
    attempt = store.of_attempt(AttemptId(JobId(1), Epoch(1)))
    ref = await upload(attempt, {"a": b"1", "b/c": b"2"})
    assert await download(attempt, ref.sha256, tmp_path / "out", size=ref.size) == 2
    assert (tmp_path / "out" / "b" / "c").read_bytes() == b"2"


async def test_many_put_the_same_at_once(ground: StoreGround, tmp_path: Path) -> None:
    data = os.urandom(100_000)
    refs = await asyncio.gather(*(ground.open().put(data) for _ in range(8)))
    assert len({ref.sha256 for ref in refs}) == 1
    await ground.open().fetch(refs[0].sha256, tmp_path / "copy")
    assert ground.names() == [place_of(refs[0].sha256)]


@pytest.mark.parametrize("damage", [b"", b"half", b"tampered with!"])
async def test_a_torn_object_is_detected_isolated_and_healed_by_a_put(
    ground: StoreGround, store: SandboxStore, tmp_path: Path, damage: bytes
) -> None:
    data = b"what was put .."
    ref = await store.put(data)
    ground.damage(ref.sha256, damage)
    with pytest.raises(TornSandbox, match=ref.sha256):
        await store.fetch(ref.sha256, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert not await store.exists(ref.sha256)
    (torn,) = ground.names()
    assert torn.startswith(f"corrupt/{ref.sha256}-")
    await store.put(data)
    await store.fetch(ref.sha256, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == data


async def test_an_object_over_the_limit_is_torn_and_not_read(ground: StoreGround, tmp_path: Path) -> None:
    ref = await ground.open().put(bytes(1001))
    with pytest.raises(TornSandbox):
        await ground.open(max_object=1000).fetch(ref.sha256, tmp_path / "copy")


@pytest.mark.parametrize("as_file", [True, False])
async def test_more_than_the_limit_is_refused_and_leaves_nothing(
    ground: StoreGround, tmp_path: Path, *, as_file: bool
) -> None:
    store = ground.open(max_object=1000)
    source = tmp_path / "source"
    source.write_bytes(bytes(1001))
    with pytest.raises(Rejected, match="limit of 1000 bytes") as refusal:
        await store.put(source if as_file else bytes(1001))
    assert refusal.value.code == "SANDBOX_TOO_LARGE"
    assert ground.names() == []
    await store.put(bytes(1000))


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n", "/" * 64])
async def test_what_is_no_digest_is_refused(store: SandboxStore, tmp_path: Path, name: str) -> None:
    for asked in (store.fetch(name, tmp_path / "copy"), store.exists(name)):
        with pytest.raises(Rejected) as refusal:
            await asked
        assert refusal.value.code == "BAD_SANDBOX_ID"


async def test_what_is_not_there_is_said(store: SandboxStore, tmp_path: Path) -> None:
    with pytest.raises(Rejected) as refusal:
        await store.fetch("0" * 64, tmp_path / "copy")
    assert refusal.value.code == "NO_SUCH_SANDBOX"
    assert list(tmp_path.glob("*copy*")) == []
    with pytest.raises(Rejected) as refusal:
        await store.put(tmp_path / "none")
    assert refusal.value.code == "NO_SUCH_FILE"


async def test_only_old_and_unreferenced_objects_are_deleted(
    ground: StoreGround, store: SandboxStore
) -> None:
    wanted, unwanted, young = [await store.put(data) for data in (b"wanted", b"unwanted", b"young")]
    for ref in (wanted, unwanted):
        ground.age(place_of(ref.sha256), 100)
    for name in ("corrupt/old", "corrupt/young"):
        ground.litter(name)
    ground.age("corrupt/old", 100)
    gone = await store.delete_unreferenced({wanted.sha256}, older_than_seconds=60)
    assert (gone.objects, gone.bytes, gone.leftovers) == (1, len(b"unwanted"), 1)
    assert [await store.exists(r.sha256) for r in (wanted, unwanted, young)] == [True, False, True]
    assert "corrupt/young" in ground.names()
    assert "corrupt/old" not in ground.names()


async def test_an_object_put_again_is_not_deleted(ground: StoreGround, store: SandboxStore) -> None:
    ref = await store.put(b"again")
    ground.age(place_of(ref.sha256), 100)
    await store.put(b"again")
    assert (await store.delete_unreferenced(set(), older_than_seconds=60)).objects == 0
    assert await store.exists(ref.sha256)


async def test_a_url_gives_the_bytes_to_whoever_has_it(store: SandboxStore) -> None:
    data = os.urandom(10_000)
    ref = await store.put(data)
    url = await store.download_url(ref.sha256, 60)
    if url is None:  # a directory has none
        return
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as answer:
            assert (answer.status, await answer.read()) == (200, data)
        async with session.get(url, headers={"Range": "bytes=9000-"}) as answer:
            assert (answer.status, await answer.read()) == (206, data[9000:])
    assert "ours" not in url, "the secret key"
    with pytest.raises(Rejected, match="no sandbox"):
        await store.download_url("0" * 64, 60)
