"""The cgroup of one payload (Linux control groups, version 2): its limits in the kernel, what it used, and the end of all in it.

The shepherd loads this module by its path, so it has no dependencies. A payload's cgroup is two directories. The outer one
has the limits. The payload starts in the inner one, `payload`, and all its descendants stay there. A payload that makes
namespaces of its own can mount the inner cgroup and write to its files. It cannot reach the limits of the outer one.
"""

# pathlib and contextlib would double the time to start of the shepherd.
# ruff: noqa: PTH102, PTH106, PTH123

from __future__ import annotations

import ctypes
import os
import signal
import struct
import time

INNER = "payload"
"""The name of the cgroup in a payload's cgroup that has the payload's processes."""
KILL_FILE = "cgroup.kill"
DESCENDANTS_FILE, DESCENDANTS = "cgroup.max.descendants", "1"
"""The limit of cgroups below a payload's own: the inner one. The payload can make none, which would have to be found and removed."""
CLONE3, INTO_CGROUP = 435, 1 << 33
"""The number of the system call clone3, which is the same on all kinds of processor, and its flag CLONE_INTO_CGROUP (Linux 5.7)."""
_ARGUMENTS = struct.Struct("11Q")
PAUSE = 0.02
"""Seconds between two attempts to remove a cgroup whose processes were killed."""

_python_libc = ctypes.PyDLL(None, use_errno=True)


class CgroupUse:
    """What the processes of a payload's cgroup used so far, ended ones included: CPU seconds, bytes of memory.

    `peak_bytes` includes cached pages of files; 0 before Linux 5.19. `out_of_memory` says whether the kernel killed them
    because their memory reached the limit of this cgroup.
    """

    def __init__(self, path: str) -> None:
        cpu, events = _numbers(f"{path}/cpu.stat"), _numbers(f"{path}/memory.events")
        self.user_seconds = cpu.get("user_usec", 0) / 1e6
        self.system_seconds = cpu.get("system_usec", 0) / 1e6
        self.peak_bytes = _number(f"{path}/memory.peak")
        # The node's own lack of memory kills, too, but not at this limit.
        self.out_of_memory = bool(events.get("oom") and events.get("oom_kill"))


def make(path: str, limits: dict[str, str]) -> None:
    """Make a payload's cgroup at `path` with these limits: texts by the names of the kernel's files.

    Files that this kernel lacks are left out. Raise OSError, and leave nothing, if the kernel refuses.
    """
    os.mkdir(path, 0o755)
    try:
        for name, text in limits.items():
            _write_if_there(f"{path}/{name}", text)
        os.mkdir(f"{path}/{INNER}", 0o755)
        _write_if_there(f"{path}/{DESCENDANTS_FILE}", DESCENDANTS)
    except OSError:
        remove(path)
        raise


def fork_into(path: str) -> int:
    """Fork this process, with the child in the payload's cgroup at `path` from its first instruction.

    Return the child's pid, or 0 in the child. Raise OSError if the kernel refuses.
    """
    inner = os.open(f"{path}/{INNER}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    arguments = _ARGUMENTS.pack(INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, inner)
    try:
        # Not released: the interpreter's lock has to be this thread's in the child.
        pid: int = _python_libc.syscall(
            ctypes.c_long(CLONE3), ctypes.c_char_p(arguments), ctypes.c_size_t(len(arguments))
        )
    finally:
        os.close(inner)
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pid


def kill(path: str) -> None:
    """Send SIGKILL to all processes in the payload's cgroup at once; before Linux 5.14 one after the other. It does not wait for their ends."""
    try:
        if _write_if_there(f"{path}/{KILL_FILE}", "1"):
            return
        for pid in pids(path):
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # gone meanwhile


def end(path: str, seconds: float) -> bool:
    """Kill all processes in the payload's cgroup and remove it, for at most `seconds`. Return whether it is gone."""
    give_up_at = time.monotonic() + seconds
    kill(path)
    while not remove(path):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(PAUSE)
        kill(path)
    return True


def pids(path: str) -> list[int]:
    """Return the pids of the processes in the payload's cgroup, without zombies; none if it is gone."""
    try:
        with open(f"{path}/{INNER}/cgroup.procs", "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def cpu_seconds(path: str) -> float:
    """Return the CPU seconds of all processes that are or were in the payload's cgroup; 0 if it is gone."""
    return _numbers(f"{path}/cpu.stat").get("usage_usec", 0) / 1e6


def memory_bytes(path: str) -> int:
    """Return the bytes of memory of the payload's cgroup that the kernel cannot drop: without cached pages of files."""
    found = _numbers(f"{path}/memory.stat")
    return found.get("anon", 0) + found.get("shmem", 0)


def remove(path: str) -> bool:
    """Remove the payload's cgroup and all below it. Return whether it is gone: a cgroup with processes stays."""
    try:
        for entry in list(os.scandir(path)):
            if entry.is_dir(follow_symlinks=False):
                remove(entry.path)
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _write_if_there(path: str, text: str) -> bool:
    """Write to one of the kernel's files; return whether it is there. Raise OSError if the kernel refuses the text."""
    try:
        # Without O_CREAT: cgroups have only the files that the kernel made.
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
    return True


def _number(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _numbers(path: str) -> dict[str, int]:
    """Return the numbers in a file of lines `name number`, by name; none if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return {name.decode(): int(number) for name, number in map(bytes.split, file)}
    except (OSError, ValueError):
        return {}
