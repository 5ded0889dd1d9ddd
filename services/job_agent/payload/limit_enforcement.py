"""The limits of a payload's memory, disk, CPU time and processes. A payload that exceeds one is ended."""

import math
from typing import Protocol

import msgspec

from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription

KIB, MIB, GIB = 1024, 1024**2, 1024**3

PROCESSES = 1_000
"""The most processes that a payload may have at a time, for each processor that its job requested. Beyond it the payload is ended."""
OPEN_FILES = 100_000
"""The most files that a payload's processes may have open, and ranges of memory mapped, for each processor. So they can be counted in time."""
TASKS_PER_PROCESS = 4
"""The factor from the most processes of a payload to the most processes and threads together. The kernel refuses more, where it can count them."""


CPU_PERIOD = 100_000
"""The microseconds over which the kernel limits the CPU time of a cgroup."""
CPU_WEIGHT, CPU_WEIGHT_MOST = 100, 10_000
"""The weight of a cgroup for each processor, which is the kernel's usual one for a cgroup, and the greatest weight that it takes."""
IMAGE_BYTES, IMAGE_TASKS = 128 * MIB, 64
"""What the cgroup of a payload in an image allows beyond its limits, in bytes of memory and in processes and threads: Podman needs some."""
GRACE_SECONDS = 30.0
"""Seconds from SIGTERM to SIGKILL when a payload is ended, unless its job asks for another time. Slurm has the same (KillWait)."""
GRACE_MOST_SECONDS = 300.0
"""The longest such time that a job can ask for, unless the pilot's configuration says otherwise."""
IN_GRACE = 1.25
"""The factor from what a payload used when its end began to what it may use until then. With more it is killed at once."""


class PayloadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one payload: times in seconds, sizes in bytes. None means no limit."""

    cpu_seconds: float | None = None
    """The most seconds of user and system CPU time of all the payload's processes together, including ended ones."""
    wall_seconds: float | None = None
    memory_bytes: int | None = None
    """The most bytes of resident memory of all the payload's processes together."""
    disk_bytes: int | None = None
    """The most bytes on disk in the payload's working and scratch directories, including deleted files that are still open."""
    asks_disk: bool = True
    """Whether the job asked for that much disk. Otherwise it is the part that the pilot gives to jobs which ask for none."""
    processes: int | None = None
    """The kernel's limit RLIMIT_NPROC. It counts all processes of the same user, not only the payload's."""
    living: int = PROCESSES
    """The most processes of the payload at the same time."""
    file_bytes: int | None = None
    """The kernel's limit RLIMIT_FSIZE: the largest size of one file, in bytes."""
    grace_seconds: float = GRACE_SECONDS
    """Seconds from SIGTERM to SIGKILL when the payload is ended."""
    processors: int = 1
    """The processors that a cgroup allows the payload. Without a cgroup nothing limits how many it uses."""
    output_bytes: int = 100 * MIB
    """The most bytes of all chosen output files together, before they are packed. With more, the largest are not stored."""

    @property
    def tasks(self) -> int:
        """The most processes and threads of the payload at the same time. The kernel refuses more, if it can count them."""
        return self.living * TASKS_PER_PROCESS

    @property
    def open_files(self) -> int:
        """The most open files and mapped ranges of memory of all the payload's processes together. With more it is ended."""
        return self.processors * OPEN_FILES


class PayloadUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload uses at one moment: CPU seconds since its start, bytes of memory and disk, and the number of its processes."""

    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    disk_bytes: int = 0
    processes: int = 0
    unknown: str = ""
    """Why it is not known what is on disk: there is more than can be counted in time. Empty: it is known."""


def limits_of(
    description: JobDescription, disk_share: int | None = None, grace_most: float = GRACE_MOST_SECONDS
) -> PayloadLimits:
    """Return the limits of a payload, from what its job description requests.

    Memory is limited to `max_memory_mb`, or to `memory_mb` if that is not given. A job that requests no disk may use
    `disk_share` bytes for each of its processors; None: no limit. `grace_most` is the most seconds from SIGTERM to SIGKILL.
    """
    memory_mb = description.max_memory_mb or description.memory_mb
    processors = max(1, description.processors)
    shared = None if disk_share is None else disk_share * processors
    return PayloadLimits(
        cpu_seconds=description.cpu_time,
        wall_seconds=description.wall_time,
        memory_bytes=None if memory_mb is None else memory_mb * MIB,
        disk_bytes=shared if description.disk_mb is None else description.disk_mb * MIB,
        asks_disk=description.disk_mb is not None,
        grace_seconds=min(
            GRACE_SECONDS if description.grace_time is None else description.grace_time, grace_most
        ),
        living=PROCESSES * processors,
        processors=processors,
    )


def kernel_limits(limits: PayloadLimits, *, in_image: bool = False) -> dict[str, str]:
    """Return the limits of a payload's cgroup, as texts by the names of the kernel's files.

    They are those of memory without swap, of processes and threads, and of processors. `in_image` says that Podman or
    Apptainer is in the cgroup, too: it has IMAGE_BYTES and IMAGE_TASKS more.
    """
    more_bytes, more_tasks = (IMAGE_BYTES, IMAGE_TASKS) if in_image else (0, 0)
    most = "max" if limits.memory_bytes is None else str(limits.memory_bytes + more_bytes)
    return {
        "memory.max": most,
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(limits.tasks + more_tasks),
        "cpu.max": f"{limits.processors * CPU_PERIOD} {CPU_PERIOD}",
        "cpu.weight": str(min(CPU_WEIGHT * limits.processors, CPU_WEIGHT_MOST)),
    }


class _Kill(Protocol):
    """The type of a function that ends a payload."""

    def __call__(self, reason: Reason, *, grace: float) -> None:
        """Send SIGTERM now and SIGKILL after at most `grace` seconds. `reason` becomes the reason in the payload's outcome."""


def enforce(limits: PayloadLimits, usage: PayloadUsage, kill: _Kill) -> None:
    """Call `kill` if the usage exceeds a limit. It gets the reason and the most seconds from SIGTERM to SIGKILL for that limit."""
    if reason := exceeded_limit(limits, usage):
        # One that forks without end starts more while it is asked at all.
        kill(reason, grace=0.0 if reason.code is Code.PROCESS_LIMIT else math.inf)


def in_grace(limits: PayloadLimits, usage: PayloadUsage) -> PayloadLimits:
    """Return the limits of a payload that is being ended and used that much when its end began.

    It may write what it wants to keep, but not go on to take memory or disk from its neighbours. Its CPU time is bounded by
    the grace.
    """

    def bound(limit: int | None, used: int) -> int | None:
        return None if limit is None else int(max(limit, used) * IN_GRACE)

    return msgspec.structs.replace(
        limits,
        cpu_seconds=None,
        memory_bytes=bound(limits.memory_bytes, usage.memory_bytes),
        disk_bytes=bound(limits.disk_bytes, usage.disk_bytes),
    )


def exceeded_limit(limits: PayloadLimits, usage: PayloadUsage) -> Reason | None:
    """Return the first limit that the usage exceeds, as a reason with both numbers in its text. None if it exceeds none.

    The order is: processes, memory, disk, CPU time.
    """
    if usage.processes > limits.living:
        return Reason(
            Code.PROCESS_LIMIT, f"had {usage.processes:,} processes of the {limits.living:,} that it may have"
        )
    if limits.memory_bytes is not None and usage.memory_bytes > limits.memory_bytes:
        return Reason(Code.MEMORY_LIMIT, _over(size(usage.memory_bytes), size(limits.memory_bytes), "memory"))
    if limits.disk_bytes is not None and usage.disk_bytes > limits.disk_bytes:
        why = "asked for" if limits.asks_disk else "that a job may use which asks for none"
        return Reason(Code.DISK_LIMIT, _over(size(usage.disk_bytes), size(limits.disk_bytes), "disk", why))
    if usage.unknown:
        return Reason(Code.DISK_LIMIT, f"{usage.unknown}: what they take on disk is not known")
    if limits.cpu_seconds is not None and usage.cpu_seconds > limits.cpu_seconds:
        return Reason(
            Code.CPU_LIMIT, _over(seconds(usage.cpu_seconds), seconds(limits.cpu_seconds), "CPU time")
        )
    return None


def memory_exhausted(limit: int | None) -> Reason:
    """Return the reason for the end of a payload that the kernel killed at its limit of memory, `limit` bytes."""
    asked = "memory" if limit is None else f"{size(limit)} of memory"
    return Reason(Code.MEMORY_LIMIT, f"used all of the {asked} asked for, and the kernel ended it")


def wall_time_exceeded(limit: float) -> Reason:
    """Return the reason for ending a payload that has run for its whole wall time limit, `limit` seconds."""
    return Reason(Code.WALL_LIMIT, f"ran for the {seconds(limit)} of wall time asked for and had not ended")


def nearness(limits: PayloadLimits, usage: PayloadUsage) -> float:
    """Return the largest quotient of usage and limit, over all limits that are set: 1 at the limit, 0 for no use.

    Wall time is not considered.
    """
    pairs = [
        (usage.memory_bytes, limits.memory_bytes),
        (usage.cpu_seconds, limits.cpu_seconds),
        (usage.disk_bytes, limits.disk_bytes),
        (usage.processes, limits.living),
    ]
    return max((used / limit for used, limit in pairs if limit), default=0.0)


def size(number: float) -> str:
    """Return a number of bytes as text for people, such as `1.5 GiB`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if number >= unit:
            return f"{number / unit:.1f} {name}"
    return f"{number:.0f} B"


def seconds(number: float) -> str:
    """Return a duration in seconds as text for people, such as `2.5 min`."""
    return f"{number:.1f} s" if number < 120 else f"{number / 60:.1f} min"


def _over(used: str, asked: str, what: str, why: str = "asked for") -> str:
    return f"used {used} of the {asked} of {what} {why}"
