"""Samples the CPU time, memory and processes that payloads use, for all payloads of an agent together.

If a payload is new or near a limit, all are sampled more often. What the processes of a payload share is counted in a thread
of the payload's own: that can take long, and harms no other. Disks are watched beside it (disk_watch.py).
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import msgspec
import structlog

from services.job_agent.payload.disk_usage import UncountableError, deleted_files
from services.job_agent.payload.disk_watch import DiskGauge, DiskWatch
from services.job_agent.payload.limit_enforcement import PayloadLimits, PayloadUsage, nearness
from services.job_agent.payload.process_control import Process
from services.job_agent.payload.process_tree import PROC, Tree, trees
from services.job_agent.payload.shared_memory import MEMFD_DEVICE, memory_of, mounted_bytes
from services.job_agent.payload.usage_curve import UsageCurve
from services.job_agent.threads import Threads

log = structlog.get_logger()

PERIOD_SHORTEST = 0.2
PERIOD_LONGEST = 2.0
YOUNG_SECONDS = 2.0
NEAR = 0.7
MEMORY_THREADS = 1_024
"""The most payloads whose memory is counted at the same time, each in a thread."""
REST_PER_COUNT = 4.0
"""For how many times as long as a count of memory took the next one waits."""
KNOWN_MOST = 2
"""Up to how many times its limit of disk a payload's files are counted, so that no count is without bound."""


class Watched:
    """A payload whose usage is sampled, with its limits and what it used at the last sample.

    `measure` returns the bytes on disk of its directories, up to the number that it is given; it may block. `on_usage` is called after each sample, `on_fault`
    with the error if sampling it fails.
    """

    def __init__(
        self,
        process: Process,
        limits: PayloadLimits,
        measure: Callable[[int], int],
        on_usage: Callable[[], None],
        on_fault: Callable[[Exception], None],
    ) -> None:
        self.process = process
        self.limits = limits
        self.measure = measure
        self.usage = PayloadUsage()
        self.shared = (0, 0)
        """The bytes in files in memory at the last count, and those of them that no process has mapped."""
        self.peak_bytes = 0
        self.curve = UsageCurve()
        self._on_usage = on_usage
        self._on_fault = on_fault
        self._loop = asyncio.get_running_loop()
        self._since = time.monotonic()
        self._until: float | None = None
        self.gauge = None if limits.disk_bytes is None else DiskGauge(limits.disk_bytes, self._since)
        """What the watch of disks knows of the payload; None without a disk limit."""

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

    def record(self, tree: Tree) -> None:
        """Record what the payload's processes use and call `on_usage`, which checks the limits. CPU time never decreases."""
        tree.shared_bytes, tree.unmapped_bytes = self.shared
        unknown = self.is_crowded(tree) or tree.may_exceed(self.limits.memory_bytes)
        memory = self.usage.memory_bytes if unknown else tree.memory_bytes
        # A process that ended before its parent counted its CPU time is missing now: the usage never decreases.
        strays = 0.0 if self.process.cgroup else self.process.stray_seconds
        cpu = max(self.usage.cpu_seconds, tree.cpu_seconds + strays)
        self.usage = msgspec.structs.replace(self.usage, cpu_seconds=cpu, processes=len(tree.pids))
        self.record_memory(memory)

    def record_memory(self, memory: int) -> None:
        """Record that the payload uses `memory` bytes of memory, and call `on_usage`, which checks the limits."""
        self.peak_bytes = max(self.peak_bytes, memory)
        self.usage = msgspec.structs.replace(self.usage, memory_bytes=memory)
        self.curve.add(self.age, self.usage.cpu_seconds, memory)
        self._on_usage()

    async def count_memory(self, tree: Tree, threads: Threads) -> None:
        """Count what the payload's processes share in one of these threads, and record it. Then rest."""
        since = time.monotonic()
        try:
            memory = await threads.run(memory_of, tree, self.process, self.limits)
        except UncountableError as error:
            self.record_disk(self.usage.disk_bytes, str(error))
        else:
            self.shared = tree.shared_bytes, tree.unmapped_bytes
            if self._until is None:
                self.record_memory(memory)
        await asyncio.sleep(REST_PER_COUNT * (time.monotonic() - since))

    def needs_memory_count(self, tree: Tree) -> bool:
        """Return whether what the processes share is to be counted now."""
        counts = not self.process.cgroup or tree.may_exceed(self.limits.memory_bytes)
        return counts and not self.is_crowded(tree)

    def is_crowded(self, tree: Tree) -> bool:
        """Return whether the payload has more processes than it may have, so that nothing else of it matters."""
        return len(tree.pids) > self.limits.living

    def count_disk(self) -> int:
        """Count the bytes on disk of the payload's directories and of deleted files that it has open, and record them. Blocking.

        It is called in another thread than the event loop's. An error there is this payload's alone.
        """
        try:
            most = KNOWN_MOST * (self.limits.disk_bytes or 0)
            used, unknown = self.measure(most) + self._deleted_bytes(), ""
        except UncountableError as error:
            used, unknown = self.usage.disk_bytes, str(error)
        except Exception as error:
            log.exception("payload not watched")
            self._tell(self._on_fault, error)
            return self.usage.disk_bytes
        self._tell(self.record_disk, used, unknown)
        return used

    def _deleted_bytes(self) -> int:
        tree = trees([self.process])[self.process.mark]
        if self.is_crowded(tree):
            return 0
        first = self.process.container
        root = tree.root or (f"{PROC}/{first}/root" if first else "")
        in_memory = {MEMFD_DEVICE, *(mounted_bytes(root, self.process.scratch) if root else ())}
        deleted = deleted_files(tree.pids, tree.proc, self.limits.open_files)
        return sum(size for (device, _), size in deleted.items() if device not in in_memory)

    def _tell(self, call: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the agent has ended
            self._loop.call_soon_threadsafe(call, *arguments)

    def record_disk(self, used: int, unknown: str = "") -> None:
        """Record that the payload uses `used` bytes on disk, and call `on_usage`, which checks the limits.

        `unknown` says why that is not known; empty: it is.
        """
        if self._until is None:
            used = max(used, self.usage.disk_bytes)  # of deleted files nothing is left at its end
            self.usage = msgspec.structs.replace(self.usage, disk_bytes=used, unknown=unknown)
            with self.answering():
                self._on_usage()


class UsageSampler:
    """Samples the payloads of an agent in the background, while the object is entered as an `async with` context.

    `place` is the directory with all jobs' directories.
    """

    def __init__(self, place: Path) -> None:
        self._watched: set[Watched] = set()
        self._disks = DiskWatch(place, self._watched, self._fail)
        self._disk_fault: asyncio.Future[None] | None = None
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        # Transfers may occupy all threads of the event loop.
        self._threads = Threads(1, "sampler")
        self._memory_threads = Threads(MEMORY_THREADS, "memory")
        self._counted: dict[Watched, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        self._disk_fault = asyncio.get_running_loop().create_future()
        self._disks.start()
        watches = (self._watch_processes(), self._watch_disks())
        self._tasks = [asyncio.create_task(each) for each in watches]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._disks.stop()
        tasks = [*self._tasks, *self._counted.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.close()
        self._memory_threads.close()

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
        if watched.gauge is not None:
            self._disks.wake(watched.gauge)
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
            found = await self._threads.run(trees, [each.process for each in subjects])
            for subject in self._watched.intersection(subjects):
                tree = found[subject.process.mark]
                with subject.answering():
                    subject.record(tree)
                if subject not in self._counted and subject.needs_memory_count(tree):
                    self._counted[subject] = asyncio.create_task(self._count_memory(subject, tree))
            urgent = any(subject.urgent for subject in self._watched)
            period = PERIOD_SHORTEST if urgent else min(period * 1.5, PERIOD_LONGEST)

    async def _count_memory(self, subject: Watched, tree: Tree) -> None:
        try:
            with subject.answering():
                await subject.count_memory(tree, self._memory_threads)
        finally:
            del self._counted[subject]

    async def _watch_disks(self) -> None:
        assert self._disk_fault is not None
        await self._disk_fault

    def _fail(self, error: Exception) -> None:
        if self._disk_fault is not None:
            loop = self._disk_fault.get_loop()
            loop.call_soon_threadsafe(self._disk_fault.set_exception, error)

    async def _something(self) -> None:
        while not self._watched:
            self._changed.clear()
            await self._changed.wait()
