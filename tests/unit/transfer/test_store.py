"""The sandbox store: whole or absent, verified, bounded, collected."""

import os
from pathlib import Path

import pytest

from wms.errors import Rejected
from wms.transfer import SandboxStore, TornSandbox, digest_of, open_store


@pytest.fixture
def store(tmp_path: Path) -> SandboxStore:
    return open_store(f"file://{tmp_path}/store")


def object_path(tmp_path: Path, sha256: str) -> Path:
    return tmp_path / "store" / sha256[:2] / sha256[2:]


def age(path: Path, seconds: float) -> None:
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


@pytest.mark.parametrize("as_file", [True, False])
async def test_put_then_fetch_gives_the_same_bytes(
    store: SandboxStore, tmp_path: Path, *, as_file: bool
) -> None:
    data = os.urandom(3_000_000)
    source = tmp_path / "source"
    source.write_bytes(data)
    ref = await store.put(source if as_file else data)
    assert (ref.sha256, ref.size) == (digest_of(data), len(data))
    assert await store.exists(ref.sha256)
    assert await store.fetch(ref.sha256, tmp_path / "copy") == ref
    assert (tmp_path / "copy").read_bytes() == data
    assert object_path(tmp_path, ref.sha256).stat().st_mode & 0o777 == 0o600
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


async def test_putting_twice_keeps_one_object_and_makes_it_young(store: SandboxStore, tmp_path: Path) -> None:
    ref = await store.put(b"once")
    path = object_path(tmp_path, ref.sha256)
    inode = path.stat().st_ino
    age(path, 1000)
    old = path.stat().st_mtime
    assert await store.put(b"once") == ref
    assert path.stat().st_ino == inode
    assert path.stat().st_mtime > old + 900


@pytest.mark.parametrize("damage", [b"", b"half", b"tampered with!"])
async def test_a_torn_object_is_detected_isolated_and_healed_by_a_put(
    store: SandboxStore, tmp_path: Path, damage: bytes
) -> None:
    data = b"what was put .."
    ref = await store.put(data)
    path = object_path(tmp_path, ref.sha256)
    path.write_bytes(damage)
    with pytest.raises(TornSandbox, match=ref.sha256):
        await store.fetch(ref.sha256, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert not await store.exists(ref.sha256)
    (torn,) = (tmp_path / "store" / "corrupt").iterdir()
    assert torn.read_bytes() == damage
    assert [p.name for p in tmp_path.iterdir()] == ["store"]
    await store.put(data)
    await store.fetch(ref.sha256, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == data


async def test_a_put_heals_an_object_of_another_size_at_once(store: SandboxStore, tmp_path: Path) -> None:
    ref = await store.put(b"whole")
    object_path(tmp_path, ref.sha256).write_bytes(b"who")
    await store.put(b"whole")
    await store.fetch(ref.sha256, tmp_path / "copy")


@pytest.mark.parametrize("as_file", [True, False])
async def test_more_than_the_limit_is_refused_and_leaves_nothing(tmp_path: Path, *, as_file: bool) -> None:
    store = open_store(f"file://{tmp_path}/store", max_object=1000)
    source = tmp_path / "source"
    source.write_bytes(bytes(1001))
    with pytest.raises(Rejected, match="limit of 1000 bytes") as refusal:
        await store.put(source if as_file else bytes(1001))
    assert refusal.value.code == "SANDBOX_TOO_LARGE"
    assert [p for p in (tmp_path / "store").rglob("*") if p.is_file() and p.name != ".lock"] == []
    await store.put(bytes(1000))


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n", "/" * 64])
async def test_what_is_no_digest_is_refused(store: SandboxStore, tmp_path: Path, name: str) -> None:
    with pytest.raises(Rejected) as refusal:
        await store.fetch(name, tmp_path / "copy")
    assert refusal.value.code == "BAD_SANDBOX_ID"
    with pytest.raises(Rejected):
        await store.exists(name)


async def test_what_is_not_there_is_said(store: SandboxStore, tmp_path: Path) -> None:
    with pytest.raises(Rejected) as refusal:
        await store.fetch("0" * 64, tmp_path / "copy")
    assert refusal.value.code == "NO_SUCH_SANDBOX"
    with pytest.raises(Rejected) as refusal:
        await store.put(tmp_path / "none")
    assert refusal.value.code == "NO_SUCH_FILE"


async def test_only_old_and_unreferenced_objects_are_collected(store: SandboxStore, tmp_path: Path) -> None:
    wanted, unwanted, young = [await store.put(data) for data in (b"wanted", b"unwanted", b"young")]
    for ref in (wanted, unwanted):
        age(object_path(tmp_path, ref.sha256), 100)
    dead = tmp_path / "store" / "tmp" / "of-a-dead-writer"
    dead.write_bytes(b"x")
    age(dead, 100)
    (tmp_path / "store" / "tmp" / "of-a-living-one").write_bytes(b"x")
    gone = await store.delete_unreferenced({wanted.sha256}, older_than_seconds=60)
    assert (gone.objects, gone.bytes, gone.leftovers) == (1, len(b"unwanted"), 1)
    assert [await store.exists(r.sha256) for r in (wanted, unwanted, young)] == [True, False, True]


async def test_an_object_put_again_is_not_collected(store: SandboxStore, tmp_path: Path) -> None:
    ref = await store.put(b"again")
    age(object_path(tmp_path, ref.sha256), 100)
    await store.put(b"again")
    assert (await store.delete_unreferenced(set(), older_than_seconds=60)).objects == 0


@pytest.mark.parametrize("url", ["/var/x", "s3://bucket/x", "file://host/x", "file:relative", ""])
def test_an_address_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(Rejected, match="not an address"):
        open_store(url)
