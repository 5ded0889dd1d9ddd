"""What this machine has: processor cores, memory, load and platform names."""

import os
import platform
import shutil
from functools import lru_cache

import msgspec

MIB = 1024 * 1024


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine offers now: cores that this process may use, memory, load and platform names."""

    cores: int
    memory_mb: int
    load: float
    """The load average of the last minute: processes that ran or waited to run."""
    platforms: tuple[str, ...]


def look() -> Machine:
    """Return the present resources of this machine. Cores are those that this process may use. Memory is the total, in MiB."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        memory_mb=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB,
        load=round(os.getloadavg()[0], 2),
        platforms=platforms(),
    )


def free_disk_mb(directory: str) -> int:
    """Return the free space in MiB of the disk that holds a directory; 0 if it cannot be read."""
    try:
        return shutil.disk_usage(directory).free // MIB
    except OSError:
        return 0


def two_digits(amount: int) -> int:
    """Return an amount rounded down to two digits, so that others have to look at few new values."""
    digit = int(10 ** max(0, len(str(max(amount, 0))) - 2))
    return amount // digit * digit


@lru_cache(maxsize=1)
def platforms() -> tuple[str, ...]:
    """Return the names of this machine's platform, such as `Linux-x86_64`. With glibc, a second name includes the version of glibc.

    A job may require a platform by one of these names.
    """
    system, machine = platform.system(), platform.machine()
    names = [f"{system}-{machine}"]
    libc, version = platform.libc_ver()
    if libc:
        names.append(f"{system}-{machine}-{libc}-{version}")
    return tuple(names)
