"""Counts the memory that a payload's processes share: mapped pages once, files of memfd_create and file systems in memory.

In a cgroup the kernel counts that. Elsewhere a file stays uncounted while its only descriptor is on its way through a socket. A
pilot that is not root does not learn, either, which pages of a shared mapping its processes gave back.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from services.job_agent.payload.disk_usage import FileId, deleted_files
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.process_control import Process
from services.job_agent.payload.process_tree import Tree, status_lines

PLACES = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - in the payload's mount namespace
"""Where a payload in a container has file systems in memory: always the first, the others where its scratch directory is not there."""


def _device_of_memfd() -> int:
    descriptor = os.memfd_create("device", os.MFD_CLOEXEC)
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


MEMFD_DEVICE = _device_of_memfd()
"""The device of all files that memfd_create makes on this machine."""


def mounted_bytes(root: str, scratch: str) -> dict[int, int]:
    """Return the bytes in each of a payload's file systems in memory, by their devices. Blocking.

    `root` is the payload's root directory, as /proc has it. `scratch` is its directory for scratch files, which is on a disk.
    """
    found: dict[int, int] = {}
    with contextlib.suppress(OSError):
        disk = os.stat(scratch).st_dev  # noqa: PTH116 - often
        for path in PLACES:
            with contextlib.suppress(OSError):
                device = os.stat(root + path).st_dev  # noqa: PTH116 - often
                if device != disk:
                    there = os.statvfs(root + path)
                    found[device] = (there.f_blocks - there.f_bfree) * there.f_frsize
    return found


def memfd_bytes(deleted: Mapping[FileId, int]) -> int:
    """Return the bytes in files of memfd_create, of these deleted files that processes have open."""
    return sum(size for (device, _), size in deleted.items() if device == MEMFD_DEVICE)


def proportional_bytes(pids: Iterable[int], proc: str) -> tuple[int, int] | None:
    """Return the bytes of memory of these processes together, with shared pages counted once, and those of them in files in memory.

    `proc` is the proc file system in which the pids are valid. None if the kernel does not permit or have these numbers. Kernels
    before 5.4 say 0 of files in memory.
    """
    total = shared = 0
    for pid in pids:
        try:
            rollup = Path(f"{proc}/{pid}/smaps_rollup").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            return None
        found = dict(line.split()[:2] for line in rollup.splitlines()[1:])
        total += int(found.get(b"Pss:", 0)) * 1024
        shared += int(found.get(b"Pss_Shmem:", 0)) * 1024
    return (total, shared) if total else None


def memory_of(tree: Tree, process: Process, limits: PayloadLimits) -> int:
    """Return the bytes of memory that a payload uses, and note in its tree what it has in files in memory. Blocking.

    To look into a process that forks is to wait for it. Pages that several processes share are counted once if they matter
    for the limit. Raise UncountableError if there are more open files than a payload may have.
    """
    if not process.cgroup:
        _count_shared(tree, process.scratch, limits.open_files)
    if not tree.may_exceed(limits.memory_bytes):
        return tree.memory_bytes
    # The sum counts what forked workers share once for each of them.
    once = proportional_bytes(tree.pids, tree.proc)
    if once is None:
        return tree.memory_bytes
    mapped, mapped_shared = once
    return mapped + (max(0, tree.shared_bytes - mapped_shared) if mapped_shared else tree.unmapped_bytes)


def _count_shared(tree: Tree, scratch: str, most: int) -> None:
    mounted = mounted_bytes(tree.root, scratch) if tree.root else {}
    tree.shared_bytes = sum(mounted.values()) + memfd_bytes(deleted_files(tree.pids, tree.proc, most))
    if tree.shared_bytes:
        mapped = sum(_mapped_shared(tree.proc, pid) for pid in tree.pids)
        tree.unmapped_bytes = max(0, tree.shared_bytes - mapped)


def _mapped_shared(proc: str, pid: int) -> int:
    """Return the bytes of files in memory that a process has mapped; 0 if it has ended."""
    try:
        line = next(line for line in status_lines(pid, proc) if line.startswith("RssShmem:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        return 0
