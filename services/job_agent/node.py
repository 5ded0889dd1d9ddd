"""The worker node of a pilot: its measured properties, which are sent with match requests.

The ad (published description) of a computing element describes all its hosts. The batch system may have given the pilot less
than a job requires, or more. So the matcher evaluates a job's requirements on the properties that the pilot sends. They take
precedence over the ad.
"""

import os
import platform
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from wms.runtime.machine import look
from wms.runtime.pilot_config import PilotConfig
from wms.site import Told, Value

LISTED_LIMIT = 1_000
"""The most values that an attribute of the node may have if it is a list. An attribute with more values is not sent."""
ISOLATION = "WMSIsolation"
"""The name of the node attribute that says how payloads are isolated: `namespaces` or `none`."""
LIMITS = "WMSLimits"
"""The name of the node attribute that says how payloads are held to their limits: by the kernel in a `cgroup`, or `sampled`."""
CONTAINERS = "WMSContainers"
"""The name of the node attribute with the program that runs containers of images, such as `podman 4.3.1`.

Nodes without such a program do not have the attribute.
"""


def node_properties(config: PilotConfig, measured: Mapping[str, Value]) -> Told:
    """Return the properties of the node for match requests: (name, value) pairs, sorted by name in lower case.

    They are the properties that were requested of the batch system, which the configuration has, replaced by `measured`
    values where these exist. `measured` is the result of `measure`.
    """
    known = dict(config.resource.node) | {name.lower(): value for name, value in measured.items()}
    return tuple(
        (name, value)
        for name, value in sorted(known.items())
        if not isinstance(value, tuple) or len(value) <= LISTED_LIMIT
    )


def measure(config: PilotConfig, isolation: str, limits: str, containers: str = "") -> dict[str, Value]:
    """Return the measured properties of this node, by name. The matcher prefers them to those in the ad of the computing element.

    Most names are of GLUE 1.3. Memory is in MiB, the clock in MHz. `isolation` says how payloads are isolated: `namespaces`
    or `none`. `limits` says how they are held to their limits: `cgroup` or `sampled`. `containers` is the program that runs
    images, with its version; empty if there is none.
    """
    clock = clock_mhz(_cpuinfo())
    software = config.resource.software
    return {
        "GlueHostMainMemoryRAMSize": look().memory_mb,
        "GlueHostArchitectureSMPSize": os.cpu_count() or 1,
        "GlueHostArchitecturePlatformType": platform.machine(),
        "GPUNumber": gpus(os.environ, Path("/dev")),
        ISOLATION: isolation,
        LIMITS: limits,
        **({CONTAINERS: containers} if containers else {}),
        **_system(),
        **({"GlueHostProcessorClockSpeed": clock} if clock else {}),
        **({"GlueHostApplicationSoftwareRunTimeEnvironment": _listed(Path(software))} if software else {}),
    }


def clock_mhz(cpuinfo: str) -> int:
    """Return the highest clock of a processor in MHz, from the text of /proc/cpuinfo. 0 if the text names none."""
    return int(max(map(float, re.findall(r"^cpu MHz\s*:\s*([0-9.]+)", cpuinfo, re.MULTILINE)), default=0.0))


def gpus(environment: Mapping[str, str], devices: Path) -> int:
    """Return how many NVIDIA GPUs this process may use: the number of entries in CUDA_VISIBLE_DEVICES of `environment`.

    Without that variable, count the NVIDIA device files in the directory `devices`, usually /dev.
    """
    given = environment.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return len([each for each in given.split(",") if each.strip() not in ("", "-1", "NoDevFiles")])
    return sum(1 for each in devices.glob("nvidia*") if each.name.removeprefix("nvidia").isdecimal())


@cache
def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def _listed(directory: Path) -> tuple[str, ...]:
    """Return the sorted names of all entries in a directory, except hidden ones; empty if it cannot be read."""
    try:
        return tuple(sorted(each.name for each in directory.iterdir() if not each.name.startswith(".")))
    except OSError:
        return ()


def _system() -> dict[str, Value]:
    """Return the name and release of the operating system as two GLUE attributes, from `os-release` if it exists, else of the kernel."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    name, release = system.get("NAME", platform.system()), system.get("VERSION_ID", platform.release())
    return {"GlueHostOperatingSystemName": name, "GlueHostOperatingSystemRelease": release}
