"""The worker node of a pilot: its measured properties, which are sent with match requests.

The ad (published description) of a computing element describes all its hosts. The batch system may have given the pilot less
than a job requires, or more. So the matcher evaluates a job's requirements on the properties that the pilot sends. They take
precedence over the ad.
"""

import os
import platform
import re
import socket
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path

from wms.jobdesc.gpus import ATTRIBUTE as GPUS
from wms.runtime.machine import look
from wms.runtime.pilot_config import PilotConfig
from wms.site import Told, Value

GPU_MEMORY, GPU_CAPABILITY, GPU_CUDA = "GPUMemory", "GPUCapability", "GPUCudaVersion"
GPU_NAME = "GPUName"
_QUERY = ("--query-gpu=index,uuid,memory.total,compute_cap,name", "--format=csv,noheader,nounits")
LIST_SECONDS = 20.0
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
        "GlueHostName": socket.getfqdn(),
        "GlueHostMainMemoryRAMSize": look().memory_mb,
        "GlueHostArchitectureSMPSize": os.cpu_count() or 1,
        "GlueHostArchitecturePlatformType": platform.machine(),
        GPUS: len(gpu_names()),
        **(_of_gpus(gpu_names()) if gpu_names() else {}),
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


def own_cpus(slots: int) -> tuple[int, ...]:
    """Return the numbers of the processors that this pilot may use, if it has as many slots; else nothing.

    A pilot with fewer slots than processors shares them with others, perhaps with another pilot that would give out the same.
    """
    found = tuple(sorted(os.sched_getaffinity(0)))
    return found if len(found) == slots else ()


@cache
def gpu_names() -> tuple[str, ...]:
    """Return the names of the NVIDIA GPUs that this pilot may use, as CUDA_VISIBLE_DEVICES has them: numbers, or ids of GPUs or MIG devices."""
    return gpus_of(os.environ, Path("/dev"), lambda: _nvidia_smi("-L"))


def gpus_of(
    environment: Mapping[str, str], devices: Path, listed: Callable[[], str] = lambda: ""
) -> tuple[str, ...]:
    """Return the names of GPUs: the entries of CUDA_VISIBLE_DEVICES in `environment`.

    Without that variable, look whether the directory `devices`, usually /dev, has NVIDIA device files. If so, the names are
    those that `listed` prints (`nvidia-smi -L`), or else the numbers of the files. A GPU that is divided into MIG devices
    is no device itself.
    """
    given = environment.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        names = [each.strip() for each in given.split(",")]
        # CUDA itself takes no device after one that is not there.
        return tuple(takewhile(lambda name: name not in ("", "-1", "NoDevFiles"), names))
    files = [each.name.removeprefix("nvidia") for each in devices.glob("nvidia*")]
    numbers = sorted((each for each in files if each.isdecimal()), key=int)
    return (gpus_listed(listed()) or tuple(numbers)) if numbers else ()


def gpus_listed(text: str) -> tuple[str, ...]:
    """Return the ids of the devices in a list that `nvidia-smi -L` printed: of each GPU, or of its MIG devices if it has any."""
    found = re.findall(r"\(UUID: ((?:GPU|MIG)-[^)\s]+)\)", text)
    divided = {
        gpu for gpu, following in pairwise(found) if gpu.startswith("GPU-") and following.startswith("MIG-")
    }
    return tuple(each for each in found if each not in divided)


def _of_gpus(names: tuple[str, ...]) -> dict[str, Value]:
    return gpu_facts(names, _nvidia_smi(*_QUERY)) | cuda_version(_nvidia_smi("-q", "-d", "COMPUTE"))


def cuda_version(text: str) -> dict[str, Value]:
    """Return the newest version of CUDA that the node's driver runs, as an attribute of the node; empty if it is not told.

    `text` is what `nvidia-smi -q` printed.
    """
    found = re.search(r"^CUDA Version\s*:\s*(\d+\.\d+)\s*$", text, re.MULTILINE)
    return {GPU_CUDA: float(found[1])} if found else {}


def gpu_facts(names: tuple[str, ...], text: str) -> dict[str, Value]:
    """Return the memory in MiB and the compute capability that each of these GPUs has at least, and their model, as attributes of the node.

    `text` is what `nvidia-smi` printed: index, id, memory, capability and model of each GPU of the node. Nothing is returned
    if one of the names, such as that of a MIG device, is not there; no model if they differ.
    """
    rows = [
        row for line in text.splitlines() if len(row := [each.strip() for each in line.split(",", 4)]) == 5
    ]
    # CUDA counts GPUs in an order of its own: a number may be any of them.
    ours = [[row for row in rows if (name.isdecimal() or row[1].startswith(name))] for name in names]
    try:
        found = [(int(row[2]), float(row[3])) for each in ours for row in each]
    except ValueError:  # such as [N/A]
        return {}
    if not found or not all(ours):
        return {}
    told: dict[str, Value] = {GPU_MEMORY: min(size for size, _ in found)}
    told[GPU_CAPABILITY] = min(able for _, able in found)
    models = {row[4] for each in ours for row in each}
    return told | ({GPU_NAME: models.pop()} if len(models) == 1 else {})


def _nvidia_smi(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIST_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


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
