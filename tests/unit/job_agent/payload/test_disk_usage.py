"""What counts on disk: what is allocated, however deep it lies and whatever lost its name, and nothing beyond."""

import mmap
import os
from pathlib import Path

import pytest

from services.job_agent.payload.disk_usage import (
    DEPTH_MOST,
    ENTRY_LEAST,
    UncountableError,
    deleted_files,
    disk_bytes,
)


def test_disk_is_what_is_allocated(tmp_path: Path) -> None:
    assert disk_bytes([tmp_path, tmp_path / "none"]) == 0
    (tmp_path / "deep" / "er").mkdir(parents=True)
    base = disk_bytes([tmp_path])
    (tmp_path / "deep" / "er" / "file").write_bytes(bytes(1 << 20))
    os.link(tmp_path / "deep" / "er" / "file", tmp_path / "again")
    (tmp_path / "link").symlink_to("/usr")
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 30)
    assert 1 << 20 <= disk_bytes([tmp_path]) - base < (1 << 20) + 20_000


def test_empty_files_count(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).touch()
    assert disk_bytes([tmp_path]) == 10 * ENTRY_LEAST


def test_names_are_counted_up_to_the_most_alone(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).touch()
    assert disk_bytes([tmp_path], 10 * ENTRY_LEAST) == 10 * ENTRY_LEAST


def test_more_names_of_one_file_are_no_way_to_have_names_without_end(tmp_path: Path) -> None:
    (tmp_path / "0").touch()
    for number in range(1, 50):
        os.link(tmp_path / "0", tmp_path / str(number))
    assert disk_bytes([tmp_path], 10 * ENTRY_LEAST) == 10 * ENTRY_LEAST


def test_no_more_files_are_looked_at_than_a_payload_may_have_open() -> None:
    opened = [os.memfd_create("any") for _ in range(60)]
    try:
        with pytest.raises(UncountableError, match="had more than 50 files open"):
            deleted_files([os.getpid()], "/proc", 50)
    finally:
        for each in opened:
            os.close(each)


def test_no_path_is_too_long_to_be_counted(tmp_path: Path) -> None:
    name = "d" * 200
    inner = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir(name, dir_fd=inner)
        outer, inner = inner, os.open(name, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.write(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=inner), bytes(3 << 20))
    assert disk_bytes([tmp_path]) > 3 << 20


def test_what_is_too_deep_is_not_guessed(tmp_path: Path) -> None:
    tmp_path.joinpath(*["d"] * (DEPTH_MOST + 1)).mkdir(parents=True)
    with pytest.raises(UncountableError):
        disk_bytes([tmp_path])


def test_a_directory_that_was_closed_is_counted_and_stays_closed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "file").write_bytes(bytes(1 << 20))
    closed.chmod(0)
    assert disk_bytes([tmp_path]) > 1 << 20
    assert closed.stat().st_mode & 0o777 == 0
    closed.chmod(0o700)


def test_a_link_in_the_place_of_a_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_bytes(bytes(1 << 20))
    (tmp_path / "work").symlink_to(tmp_path / "other")
    assert disk_bytes([tmp_path / "work"]) == 0


def test_files_that_lost_their_names_are_counted_while_they_are_open(tmp_path: Path) -> None:
    def deleted() -> int:
        return sum(deleted_files([os.getpid()], "/proc", 10**6).values())

    before = deleted()
    with (tmp_path / "gone").open("w+b") as file:
        (tmp_path / "gone").unlink()
        file.write(bytes(3 << 20))
        file.flush()
        os.fsync(file.fileno())
        assert deleted() - before >= 3 << 20


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel tells it to root alone")
def test_shared_memory_counts_though_its_pages_were_given_back() -> None:
    def deleted() -> int:
        return sum(deleted_files([os.getpid()], "/proc", 10**6).values())

    before = deleted()
    with mmap.mmap(-1, 3 << 20) as memory:
        memory.write(bytes(3 << 20))
        memory.madvise(mmap.MADV_DONTNEED)
        assert deleted() - before >= 3 << 20
