"""The resources of this machine: cores, memory, load, platform."""

import os
import platform
from functools import lru_cache

import msgspec

MIB = 1024 * 1024


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine's present resources, as far as this process may use them."""

    cores: int
    memory_mb: int
    load: float
    """The average number of processes that ran or waited to run in the last minute."""
    platforms: tuple[str, ...]


def look() -> Machine:
    """Return this machine's present resources."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        memory_mb=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB,
        load=round(os.getloadavg()[0], 2),
        platforms=platforms(),
    )


@lru_cache(maxsize=1)
def platforms() -> tuple[str, ...]:
    """Return the platform names by which jobs may require this machine."""
    system, machine = platform.system(), platform.machine()
    names = [f"{system}-{machine}"]
    libc, version = platform.libc_ver()
    if libc:
        names.append(f"{system}-{machine}-{libc}-{version}")
    return tuple(names)
