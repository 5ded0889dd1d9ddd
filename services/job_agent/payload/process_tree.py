"""Finds the processes of payloads, and the CPU time and resident memory that they use. Blocking, but no process is waited for.

A payload with a cgroup is measured by the kernel. The processes of another are found by its mark, a resource limit that they
inherit, or by its container.
"""

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from services.job_agent.payload import cgroup, shepherd
from services.job_agent.payload.process_control import Process

PROC = "/proc"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_NONE: Mapping[int, int] = MappingProxyType({})


class Tree(msgspec.Struct):
    """What the processes of one payload use together: CPU seconds, resident memory in bytes, and the pids of the living ones.

    `shared_bytes` is what it has in files in memory, `unmapped_bytes` the part of that which is not in `rss_bytes`.
    """

    cpu_seconds: float = 0.0
    rss_bytes: int = 0
    shared_bytes: int = 0
    unmapped_bytes: int = 0
    pids: list[int] = msgspec.field(default_factory=list)
    proc: str = PROC
    """The proc file system in which the pids are valid: `/proc`, or that of the payload's container."""

    @property
    def root(self) -> str:
        """The payload's root directory, if it has its own; else empty."""
        return self.proc.removesuffix(PROC)

    @property
    def memory_bytes(self) -> int:
        """The bytes of memory, where pages that several processes share count once for each of them."""
        return self.rss_bytes + self.unmapped_bytes

    def may_exceed(self, limit: int | None) -> bool:
        """Return whether it depends on shared pages if the memory exceeds `limit`. None: no limit."""
        return limit is not None and self.memory_bytes > limit and len(self.pids) != 1


def usage_by_mark(marks: Iterable[int], in_images: Mapping[int, int] = _NONE) -> dict[int, Tree]:
    """Return what the processes with each of these marks use, by mark. Blocking: about 2 microseconds for each process on the machine.

    A mark is the resource limit by which the processes of a payload are found. Processes of other users are not included.
    `in_images` has the pids of Apptainers, by the marks of the payloads in their containers: of these payloads only what is in
    the container counts.
    """
    trees = {mark: Tree() for mark in marks}
    if not trees:
        return trees
    for pid, mark in shepherd.marked(trees, of_others=False):
        with contextlib.suppress(OSError, ValueError, LookupError):
            if mark not in in_images or _is_in_image(pid, in_images[mark]):
                _add(trees[mark], pid)
    return trees


def _is_in_image(pid: int, apptainer: int) -> bool:
    """Return whether a process is a payload's in an image's container. `apptainer` is the pid of the program that made the container.

    That program's own first processes in the container do not count.
    """
    line = next(each for each in status_lines(pid) if each.startswith("NSpid:"))
    return len(line.split()) > 2 and not _runs_same(pid, apptainer)


def status_lines(pid: int, proc: str = PROC) -> list[str]:
    """Return the lines of a process's file `status`. Raise OSError if it has ended."""
    return Path(f"{proc}/{pid}/status").read_text(errors="replace").splitlines()


def _runs_same(pid: int, other: int) -> bool:
    """Return whether two processes have the same executable file. False if the kernel does not tell."""
    try:
        return Path(f"/proc/{pid}/exe").samefile(f"/proc/{other}/exe")
    except OSError:
        return False


def usage_in_container(container: int, *, with_first: bool = False) -> Tree:
    """Return what the processes in a container use together. `container` is the pid of its first process. Blocking.

    That first process is included only if `with_first` is True. The result is empty if the container has ended.
    """
    tree = Tree(proc=f"/proc/{container}/root/proc")
    with contextlib.suppress(OSError):
        for name in os.listdir(tree.proc):  # noqa: PTH208 - the names alone
            if name.isdigit() and (with_first or name != "1"):
                with contextlib.suppress(OSError, ValueError, LookupError):
                    _add(tree, int(name))
    return tree


def usage_in_cgroup(path: str) -> Tree:
    """Return what the processes of the payload's cgroup at `path` use together. Blocking.

    The CPU time includes that of ended processes. The memory is without cached pages of files.
    """
    return Tree(
        cpu_seconds=cgroup.cpu_seconds(path), rss_bytes=cgroup.memory_bytes(path), pids=cgroup.pids(path)
    )


def usage_in_image(process: Process) -> Tree:
    """Return what a payload uses whose container of an image was made by Podman, which wrote the container's pid to a file.

    The result is empty before the container runs and after it has ended. If the payload has a cgroup, the CPU time is all that was
    used there, Podman's included. Blocking.
    """
    tree = _usage_of_first(process)
    if process.cgroup:
        tree.cpu_seconds = cgroup.cpu_seconds(process.cgroup)
    return tree


def _usage_of_first(process: Process) -> Tree:
    try:
        first = int(Path(process.pid_file).read_text())
        # It may be another process's by now, in which case it is not in a PID namespace of its own.
        if _namespace(first) == _namespace(os.getpid()):
            return Tree()
    except (OSError, ValueError):
        return Tree()
    return usage_in_container(first, with_first=True)


def _namespace(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/pid").readlink()


def trees(processes: Collection[Process]) -> dict[int, Tree]:
    """Return what each of these payloads uses, by its mark, without what its processes share."""
    found = {each.mark: tree for each in processes if (tree := _tree_apart(each)) is not None}
    in_images = {each.mark: each.pid for each in processes if each.has_image}
    found |= usage_by_mark({each.mark for each in processes} - found.keys(), in_images)
    return found


def _tree_apart(process: Process) -> Tree | None:
    """Return what a payload uses that a cgroup or a container keeps apart from other processes; None if neither does."""
    if process.pid_file:
        return usage_in_image(process)
    # In a cgroup of a payload in an image runs Apptainer, too.
    if process.cgroup and not process.has_image:
        return usage_in_cgroup(process.cgroup)
    return usage_in_container(process.container) if process.container else None


def _add(tree: Tree, pid: int) -> None:
    fields = _stat(f"{tree.proc}/{pid}")
    # utime, stime, and the same of the children waited for.
    tree.cpu_seconds += sum(map(int, fields[11:15])) / _TICKS
    if fields[0] == b"Z" and int(fields[17]) > 1:
        pid, fields = _living_thread(tree.proc, pid)
    if fields[0] != b"Z":
        tree.rss_bytes += int(fields[21]) * _PAGE
        tree.pids.append(pid)


def _stat(process: str) -> list[bytes]:
    # The name in parentheses may hold anything; after it come state, ppid, ...
    return Path(f"{process}/stat").read_bytes().rpartition(b")")[2].split()


def _living_thread(proc: str, pid: int) -> tuple[int, list[bytes]]:
    """Return a thread of a process whose first thread has ended, and its fields. /proc has memory and files of the process under it.

    Raise LookupError if all have ended.
    """
    for name in os.listdir(f"{proc}/{pid}/task"):  # noqa: PTH208 - the names alone
        with contextlib.suppress(OSError):
            if (fields := _stat(f"{proc}/{pid}/task/{name}"))[0] not in {b"Z", b"X"}:
                return int(name), fields
    raise LookupError(pid)
