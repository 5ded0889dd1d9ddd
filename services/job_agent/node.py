"""The worker node of a pilot: its measured properties, which are sent with match requests.

The ad of a computing element describes all its hosts. The batch system may have given less than a job requires, or more. So
the matcher evaluates a job's requirements on the properties that the pilot sends of its node, above the ad.
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
"""The most values of a list attribute of the node. Attributes with longer lists are not sent."""
ISOLATION = "WMSIsolation"
"""The name of the node attribute that says how payloads are isolated: `namespaces` or `none`."""

CONTAINERS = "WMSContainers"
"""The name of the node attribute that says what runs containers of images, such as `podman 4.3.1`. Other nodes lack it."""


def node_properties(config: PilotConfig, measured: Mapping[str, Value]) -> Told:
    """Return the properties of the node for match requests: (name, value) pairs, sorted by name in lower case.

    `measured` values, as `measure` returns them, replace those that were requested of the batch system.
    """
    known = dict(config.resource.node) | {name.lower(): value for name, value in measured.items()}
    return tuple(
        (name, value)
        for name, value in sorted(known.items())
        if not isinstance(value, tuple) or len(value) <= LISTED_LIMIT
    )


def measure(config: PilotConfig, isolation: str, containers: str = "") -> dict[str, Value]:
    """Return the measured properties of this node, by name. They replace those in the ad of its computing element.

    Most names are of GLUE 1.3. Memory is in MiB, the clock in MHz. `isolation` says how payloads are isolated,
    `containers` what runs images: a program and its version, or nothing.
    """
    clock = clock_mhz(_cpuinfo())
    software = config.resource.software
    return {
        "GlueHostMainMemoryRAMSize": look().memory_mb,
        "GlueHostArchitectureSMPSize": os.cpu_count() or 1,
        "GlueHostArchitecturePlatformType": platform.machine(),
        "GPUNumber": gpus(os.environ, Path("/dev")),
        ISOLATION: isolation,
        **({CONTAINERS: containers} if containers else {}),
        **_system(),
        **({"GlueHostProcessorClockSpeed": clock} if clock else {}),
        **({"GlueHostApplicationSoftwareRunTimeEnvironment": _listed(Path(software))} if software else {}),
    }


def clock_mhz(cpuinfo: str) -> int:
    """Return the clock of the fastest processor in MHz, from the text of /proc/cpuinfo. 0 if it has none."""
    return int(max(map(float, re.findall(r"^cpu MHz\s*:\s*([0-9.]+)", cpuinfo, re.MULTILINE)), default=0.0))


def gpus(environment: Mapping[str, str], devices: Path) -> int:
    """Return how many NVIDIA GPUs this process may use: those in the variable CUDA_VISIBLE_DEVICES of `environment`.

    Without that variable, count the device files in the directory `devices`, usually /dev.
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
    """Return the sorted names in a directory without hidden ones; empty if the directory cannot be read."""
    try:
        return tuple(sorted(each.name for each in directory.iterdir() if not each.name.startswith(".")))
    except OSError:
        return ()


def _system() -> dict[str, Value]:
    """Return the name and release of the operating system, of `os-release` if it exists, else of the kernel."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    name, release = system.get("NAME", platform.system()), system.get("VERSION_ID", platform.release())
    return {"GlueHostOperatingSystemName": name, "GlueHostOperatingSystemRelease": release}
