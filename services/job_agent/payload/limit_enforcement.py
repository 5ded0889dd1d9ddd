"""The limits of a payload, and its end when it uses more: of memory, disk, CPU time or processes."""

from typing import Protocol

import msgspec

from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription

KIB, MIB, GIB = 1024, 1024**2, 1024**3

PROCESSES = 1_000
"""Processes for each processor that a job asked for: far more than programs have, far fewer than a node can bear."""
TASKS_PER_PROCESS = 4
"""The kernel's own bound in a container counts threads, too."""


GRACE_SECONDS = 0.5
"""Seconds between SIGTERM and SIGKILL."""
# A payload that eats memory or disk takes them from its neighbours while it is asked kindly.
URGENT_GRACE_SECONDS = 0.2
# One that forks without end starts more while it is asked at all.
GRACE_BY_REASON = {
    Code.MEMORY_LIMIT: URGENT_GRACE_SECONDS,
    Code.DISK_LIMIT: URGENT_GRACE_SECONDS,
    Code.PROCESS_LIMIT: 0.0,
}


class PayloadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one payload; None stands for no limit."""

    cpu_seconds: float | None = None
    """User and system CPU time of all its processes, those that ended included."""
    wall_seconds: float | None = None
    memory_bytes: int | None = None
    """Resident memory of all its processes together."""
    disk_bytes: int | None = None
    """Disk space allocated in its directory."""
    processes: int | None = None
    """RLIMIT_NPROC: counted by the kernel over all processes of the user."""
    living: int = PROCESSES
    """The number of processes that may live at a time."""
    file_bytes: int | None = None
    """RLIMIT_FSIZE: the size of one file."""
    output_bytes: int = 100 * MIB
    """The size of all files of the output sandbox, before they are packed."""

    @property
    def tasks(self) -> int:
        """Processes and threads that live at a time: where the kernel can, it refuses to start more."""
        return self.living * TASKS_PER_PROCESS


class PayloadUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that a payload uses at one moment."""

    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    disk_bytes: int = 0
    processes: int = 0


def limits_of(description: JobDescription) -> PayloadLimits:
    """Return what the job asked for, as limits; of memory what it may use at most, if it says so."""
    memory_mb = description.max_memory_mb or description.memory_mb
    return PayloadLimits(
        cpu_seconds=description.cpu_time,
        wall_seconds=description.wall_time,
        memory_bytes=None if memory_mb is None else memory_mb * MIB,
        disk_bytes=None if description.disk_mb is None else description.disk_mb * MIB,
        living=PROCESSES * max(1, description.processors),
    )


class _Kill(Protocol):
    """Ends a payload."""

    def __call__(self, reason: Reason, *, grace: float) -> None:
        """Send SIGTERM now and SIGKILL after `grace` seconds; the payload's outcome has this reason."""


def enforce(limits: PayloadLimits, usage: PayloadUsage, kill: _Kill) -> None:
    """Kill a payload that uses more than a limit allows; the limit that it broke says how much grace it gets."""
    if reason := struck(limits, usage):
        kill(reason, grace=GRACE_BY_REASON.get(reason.code, GRACE_SECONDS))


def struck(limits: PayloadLimits, usage: PayloadUsage) -> Reason | None:
    """Return which limit the usage is over, and by what, or None."""
    if usage.processes > limits.living:
        return Reason(
            Code.PROCESS_LIMIT, f"had {usage.processes:,} processes of the {limits.living:,} that it may have"
        )
    if limits.memory_bytes is not None and usage.memory_bytes > limits.memory_bytes:
        return Reason(Code.MEMORY_LIMIT, _over(size(usage.memory_bytes), size(limits.memory_bytes), "memory"))
    if limits.disk_bytes is not None and usage.disk_bytes > limits.disk_bytes:
        return Reason(Code.DISK_LIMIT, _over(size(usage.disk_bytes), size(limits.disk_bytes), "disk"))
    if limits.cpu_seconds is not None and usage.cpu_seconds > limits.cpu_seconds:
        return Reason(
            Code.CPU_LIMIT, _over(seconds(usage.cpu_seconds), seconds(limits.cpu_seconds), "CPU time")
        )
    return None


def wall_struck(limit: float) -> Reason:
    """Return the reason of a payload that ran for all the wall time it asked for."""
    return Reason(Code.WALL_LIMIT, f"ran for the {seconds(limit)} of wall time asked for and had not ended")


def nearness(limits: PayloadLimits, usage: PayloadUsage) -> float:
    """Return how near the usage is to the nearest limit watched by sampling: 1 is at it."""
    pairs = [
        (usage.memory_bytes, limits.memory_bytes),
        (usage.cpu_seconds, limits.cpu_seconds),
        (usage.disk_bytes, limits.disk_bytes),
        (usage.processes, limits.living),
    ]
    return max((used / limit for used, limit in pairs if limit), default=0.0)


def size(number: float) -> str:
    """Return a number of bytes for people."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if number >= unit:
            return f"{number / unit:.1f} {name}"
    return f"{number:.0f} B"


def seconds(number: float) -> str:
    """Return a duration for people."""
    return f"{number:.1f} s" if number < 120 else f"{number / 60:.1f} min"


def _over(used: str, asked: str, what: str) -> str:
    return f"used {used} of the {asked} of {what} asked for"
