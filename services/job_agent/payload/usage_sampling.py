"""Samples the CPU time, memory, disk space and processes that payloads use, for all payloads of an agent together.

If a payload is new or near a limit, all are sampled more often. A payload with a cgroup is measured by the kernel. The
processes of another are found by its mark, a resource limit that they inherit.
"""

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

import msgspec
import structlog

from services.job_agent.payload import cgroup, shepherd
from services.job_agent.payload.limit_enforcement import PayloadLimits, PayloadUsage, nearness
from services.job_agent.payload.process_control import Process
from services.job_agent.payload.usage_curve import UsageCurve
from services.job_agent.threads import Threads

log = structlog.get_logger()

PERIOD_SHORTEST = 0.2
PERIOD_LONGEST = 2.0
YOUNG_SECONDS = 2.0
NEAR = 0.7
# Directories are measured one after the other. The pause after each measurement grows with the time that it took.
DISK_REST_SHORTEST = 0.5
DISK_REST_PER_WALK = 20.0

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_NONE: Mapping[int, int] = MappingProxyType({})


class Tree(msgspec.Struct):
    """What the processes of one payload use together: CPU seconds, resident memory in bytes, and the pids of the living ones."""

    cpu_seconds: float = 0.0
    rss_bytes: int = 0
    pids: list[int] = msgspec.field(default_factory=list)
    proc: str = "/proc"
    """The proc file system in which the pids are valid: `/proc`, or that of the payload's container."""


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
    line = next(each for each in _status(pid) if each.startswith("NSpid:"))
    return len(line.split()) > 2 and not _runs_same(pid, apptainer)


def _status(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()


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
                with contextlib.suppress(OSError, ValueError, IndexError):
                    _add(tree, int(name))
    return tree


def usage_in_cgroup(path: str) -> Tree:
    """Return what the processes of the payload's cgroup at `path` use together. Blocking.

    The CPU time includes that of ended processes. The memory is without cached pages of files.
    """
    return Tree(cgroup.cpu_seconds(path), cgroup.memory_bytes(path), cgroup.pids(path))


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


def _trees(processes: Collection[Process]) -> dict[int, Tree]:
    """Return what each of these payloads uses, by its mark. Blocking."""
    found = {each.mark: tree for each in processes if (tree := _tree_apart(each)) is not None}
    in_images = {each.mark: each.pid for each in processes if each.has_image}
    return found | usage_by_mark({each.mark for each in processes} - found.keys(), in_images)


def _tree_apart(process: Process) -> Tree | None:
    """Return what a payload uses that a cgroup or a container keeps apart from other processes; None if neither does."""
    if process.pid_file:
        return usage_in_image(process)
    # In a cgroup of a payload in an image runs Apptainer, too.
    if process.cgroup and not process.has_image:
        return usage_in_cgroup(process.cgroup)
    return usage_in_container(process.container) if process.container else None


def _add(tree: Tree, pid: int) -> None:
    line = Path(f"{tree.proc}/{pid}/stat").read_bytes()
    # The name in parentheses may hold anything; after it come state, ppid, ...
    fields = line.rpartition(b")")[2].split()
    # utime, stime, and the same of the children waited for.
    tree.cpu_seconds += sum(map(int, fields[11:15])) / _TICKS
    if fields[0] != b"Z":
        tree.rss_bytes += int(fields[21]) * _PAGE
        tree.pids.append(pid)


def proportional_bytes(pids: Iterable[int], proc: str = "/proc") -> int | None:
    """Return the bytes of memory of these processes together, with shared pages counted once.

    `proc` is the proc file system in which the pids are valid. None if the kernel does not permit or have these numbers.
    """
    total = 0
    for pid in pids:
        try:
            rollup = Path(f"{proc}/{pid}/smaps_rollup").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            return None
        line = next((line for line in rollup.splitlines() if line.startswith(b"Pss:")), None)
        total += int(line.split()[1]) * 1024 if line else 0
    return total or None


def disk_bytes(directories: Iterable[Path]) -> int:
    """Return the bytes on disk of all files below these directories. A file with several hard links counts once. Blocking."""
    total = 0
    seen: set[tuple[int, int]] = set()
    waiting = [str(directory) for directory in directories]
    while waiting:
        for entry in _entries(waiting.pop()):
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if found.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                    if (found.st_dev, found.st_ino) in seen:
                        continue
                    seen.add((found.st_dev, found.st_ino))
                total += found.st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return total


def unlinked_bytes(tree: Tree) -> int:
    """Return the bytes on disk of deleted files that these processes still have open. Files in memory do not count. Blocking."""
    found: dict[tuple[int, int], int] = {}
    for pid in tree.pids:
        for entry in _entries(f"{tree.proc}/{pid}/fd"):
            with contextlib.suppress(OSError):
                status = entry.stat()
                # Files in memory are not on a disk: the major number of their device is 0.
                if status.st_nlink == 0 and stat.S_ISREG(status.st_mode) and os.major(status.st_dev):
                    found[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(found.values())


def _entries(directory: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []  # gone meanwhile, or closed by the payload to itself


class Watched:
    """A payload whose usage is sampled, with its limits and what it used at the last sample.

    `measure` returns the bytes on disk of its directories; it may block. `on_usage` is called after each sample, `on_fault`
    with the error if sampling it fails.
    """

    def __init__(
        self,
        process: Process,
        limits: PayloadLimits,
        measure: Callable[[], int],
        on_usage: Callable[[], None],
        on_fault: Callable[[Exception], None],
    ) -> None:
        self.process = process
        self.limits = limits
        self.measure = measure
        self.tree = Tree()
        self.usage = PayloadUsage()
        self.peak_bytes = 0
        self.curve = UsageCurve()
        self._on_usage = on_usage
        self._on_fault = on_fault
        self._since = time.monotonic()
        self._until: float | None = None
        self._disk_due = self._since + DISK_REST_SHORTEST

    @property
    def age(self) -> float:
        """The seconds from the beginning of the sampling until now, or until `stop` was called."""
        return (self._until or time.monotonic()) - self._since

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Return a context in which an error is logged and passed to `on_fault` of this payload, and not raised.

        So other payloads are still sampled.
        """
        try:
            yield
        except Exception as error:
            log.exception("payload not watched")
            self._on_fault(error)

    def stop(self) -> None:
        """Record that the payload has ended: its age no longer grows."""
        self._until = time.monotonic()

    @property
    def urgent(self) -> bool:
        """Whether to sample often, because the payload is younger than YOUNG_SECONDS or its usage above the share NEAR of a limit."""
        return self.age < YOUNG_SECONDS or nearness(self.limits, self.usage) > NEAR

    @property
    def disk_due(self) -> float:
        """The time at which to measure the payload's disk space next, in seconds of the monotonic clock. Infinite without a disk limit."""
        return self._disk_due if self.limits.disk_bytes is not None else float("inf")

    def record(self, tree: Tree) -> None:
        """Record what the payload's processes use and call `on_usage`, which checks the limits.

        CPU time never decreases. If the memory is over its limit, shared pages are counted once.
        """
        self.tree = tree
        memory = tree.rss_bytes
        if self.limits.memory_bytes is not None and memory > self.limits.memory_bytes and len(tree.pids) > 1:
            # Forked workers share most of their pages, which the sum counts once for each worker.
            memory = min(memory, proportional_bytes(tree.pids, tree.proc) or memory)
        # A process that ended before its parent counted its CPU time is missing now: the usage never decreases.
        strays = 0.0 if self.process.cgroup else self.process.stray_seconds
        cpu = max(self.usage.cpu_seconds, tree.cpu_seconds + strays)
        self.peak_bytes = max(self.peak_bytes, memory)
        self.usage = msgspec.structs.replace(
            self.usage, cpu_seconds=cpu, memory_bytes=memory, processes=len(tree.pids)
        )
        self.curve.add(self.age, cpu, memory)
        self._on_usage()

    def disk_used(self) -> int:
        """Return the bytes on disk of the payload's directories and of deleted files that it has open. Blocking."""
        return self.measure() + unlinked_bytes(self.tree)

    def record_disk(self, used: int, walk_seconds: float) -> None:
        """Record that the payload uses `used` bytes on disk, and call `on_usage`, which checks the limits.

        `walk_seconds` is how long the measurement took. The longer it took, the later is the next one.
        """
        self.usage = msgspec.structs.replace(self.usage, disk_bytes=used)
        self._disk_due = time.monotonic() + max(DISK_REST_SHORTEST, DISK_REST_PER_WALK * walk_seconds)
        self._on_usage()


class UsageSampler:
    """Samples the payloads of an agent in the background, while the object is entered as an `async with` context."""

    def __init__(self) -> None:
        self._watched: set[Watched] = set()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        # Transfers may occupy all threads of the event loop; so each of the two tasks has its own thread.
        self._threads = Threads(2, "sampler")

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._watch_processes()), asyncio.create_task(self._watch_disks())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.close()

    async def watch(self) -> None:
        """Wait until sampling stops. If it stopped because of an error, raise that."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled():
                task.result()

    @contextlib.contextmanager
    def watching(self, watched: Watched) -> Iterator[None]:
        """Return a context: the payload is sampled until the context ends."""
        self._watched.add(watched)
        self._changed.set()
        try:
            yield
        finally:
            self._watched.discard(watched)

    async def _watch_processes(self) -> None:
        period = PERIOD_SHORTEST
        while True:
            await self._something()
            await asyncio.sleep(period)
            subjects = list(self._watched)
            trees = await self._threads.run(_trees, [subject.process for subject in subjects])
            for subject in self._watched.intersection(subjects):
                with subject.answering():
                    subject.record(trees[subject.process.mark])
            urgent = any(subject.urgent for subject in self._watched)
            period = PERIOD_SHORTEST if urgent else min(period * 1.5, PERIOD_LONGEST)

    async def _watch_disks(self) -> None:
        while True:
            await self._something()
            await asyncio.sleep(DISK_REST_SHORTEST / 2)
            for subject in sorted(self._watched, key=lambda subject: subject.disk_due):
                if subject.disk_due > time.monotonic():
                    break
                start = time.monotonic()
                with subject.answering():
                    used = await self._threads.run(subject.disk_used)
                    subject.record_disk(used, time.monotonic() - start)

    async def _something(self) -> None:
        while not self._watched:
            self._changed.clear()
            await self._changed.wait()
