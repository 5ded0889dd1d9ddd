"""Files in memory that no process has mapped."""

import os
from pathlib import Path

from services.job_agent.payload.disk_usage import deleted_files
from services.job_agent.payload.shared_memory import memfd_bytes, mounted_bytes, proportional_bytes


def test_files_of_memfd_create_count_and_others_do_not() -> None:
    descriptor = os.memfd_create("any")
    try:
        before = memfd_bytes(deleted_files([os.getpid()], "/proc", 10**6))
        os.write(descriptor, bytes(2 << 20))
        found = deleted_files([os.getpid()], "/proc", 10**6)
        assert memfd_bytes(found) - before == 2 << 20
        assert memfd_bytes({(0, 1): 5}) == 0
    finally:
        os.close(descriptor)


def test_a_disk_is_no_memory() -> None:
    shared = Path("/dev/shm").stat().st_dev
    assert shared in mounted_bytes("", "/usr")
    assert shared not in mounted_bytes("", "/dev/shm")
    assert mounted_bytes("", "/no/such/directory") == {}


def test_pages_are_counted_once_for_all_that_share_them() -> None:
    alone = proportional_bytes([os.getpid()], "/proc")
    assert alone
    assert alone[0] > 1 << 20
    assert proportional_bytes([2**22 + 1], "/proc") is None
