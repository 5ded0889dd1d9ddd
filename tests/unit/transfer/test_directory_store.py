"""The sandbox store in a directory: what is on its disk. What all stores do is in tests/contract/sandbox_store."""

import os
from pathlib import Path

import pytest

from wms.transfer import SandboxStore, open_store


@pytest.fixture
def store(tmp_path: Path) -> SandboxStore:
    return open_store(f"file://{tmp_path}/store")


def object_path(tmp_path: Path, sha256: str) -> Path:
    return tmp_path / "store" / sha256[:2] / sha256[2:]


def age(path: Path, seconds: float) -> None:
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


async def test_an_object_is_its_owners_alone(store: SandboxStore, tmp_path: Path) -> None:
    ref = await store.put(b"mine")
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


async def test_a_put_heals_an_object_of_another_size_at_once(store: SandboxStore, tmp_path: Path) -> None:
    ref = await store.put(b"whole")
    object_path(tmp_path, ref.sha256).write_bytes(b"who")
    await store.put(b"whole")
    await store.fetch(ref.sha256, tmp_path / "copy")


async def test_files_of_dead_writers_are_deleted(store: SandboxStore, tmp_path: Path) -> None:
    dead = tmp_path / "store" / "tmp" / "of-a-dead-writer"
    dead.write_bytes(b"x")
    age(dead, 100)
    (tmp_path / "store" / "tmp" / "of-a-living-one").write_bytes(b"x")
    assert (await store.delete_unreferenced(set(), older_than_seconds=60)).leftovers == 1
    assert [each.name for each in (tmp_path / "store" / "tmp").iterdir()] == ["of-a-living-one"]
