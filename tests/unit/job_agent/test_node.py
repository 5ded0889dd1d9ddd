"""A node is measured by its pilot, and the matcher judges jobs by what the pilot sends of it, above what its element told."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.job_agent.node import (
    LISTED_LIMIT,
    clock_mhz,
    cuda_version,
    gpu_facts,
    gpus_listed,
    gpus_of,
    measure,
    node_properties,
    own_cpus,
)
from services.job_agent.resource import describe
from wms.jobdesc.description import JobDescription
from wms.matching import node_facts
from wms.matching.clauses import fits
from wms.matching.requirements import requirements_of
from wms.runtime.pilot_config import PilotConfig
from wms.site import Value, with_ad

MEASURED: dict[str, Value] = {
    "GlueHostMainMemoryRAMSize": 900,
    "GlueHostApplicationSoftwareRunTimeEnvironment": ("APP1",),
}
TOLD = (
    "[GlueHostMainMemoryRAMSize = 4000; GlueHostBenchmarkSI00 = 400; PerCore = GlueHostMainMemoryRAMSize / 2]"
)


def config(**resource: Any) -> PilotConfig:
    pilot = {
        "pilot_id": "p",
        "site": "s",
        "ce": "c",
        "vo": "v",
        "slots": 1,
        "token_file": "t",
        "directory": "d",
    }
    said = {"pilot": pilot, "sandboxes": {"url": "file:///s"}, "resource": resource}
    return msgspec.convert(said, PilotConfig)


def mismatch(requirements: str, told: str = TOLD, **more: Any) -> str:
    """Return why the matcher gives a job no pilot of the node; empty if it does."""
    here = config()
    node = node_properties(here, MEASURED)
    sent = describe(here, free=1, memory_taken_mb=0, seconds_left=86_400, node=node)
    description = JobDescription(executable="true", requirements=requirements, **more)
    asked = requirements_of(description, "ann", "g", "v", (86_400,))
    found = fits(asked, with_ad(msgspec.structs.replace(sent, setup=asked.setup), told))
    return "" if found is None else found.detail


@pytest.mark.parametrize(
    "requirements",
    [
        "",
        "other.GlueHostMainMemoryRAMSize >= 900",
        'Member("APP1", other.GlueHostApplicationSoftwareRunTimeEnvironment)',
        "other.GlueHostMainMemoryRAMSize >= MY.MinRAM && other.GlueHostBenchmarkSI00 < 500",
        'Site == "s"',
    ],
)
def test_a_node_that_will_do_is_taken(requirements: str) -> None:
    assert mismatch(requirements, memory_mb=10) == ""


@pytest.mark.parametrize(
    ("requirements", "reason"),
    [
        (
            "other.GlueHostMainMemoryRAMSize >= 2000 && other.GlueHostBenchmarkSI00 < 500",
            "other.gluehostmainmemoryramsize >= 2000 is false where other.gluehostmainmemoryramsize = 900",
        ),
        ('Member("APP2", other.GlueHostApplicationSoftwareRunTimeEnvironment)', "is false where"),
        ("other.PerCore > 1000", "other.percore > 1000 is false where other.percore = 450"),
        ("other.GlueHostMainMemoryRAMSize + other.Nowhere > 0", "is undefined where"),
        ("other.GlueHostMainMemoryRAMSize", "a number is not true"),
    ],
)
def test_a_node_that_will_not_is_refused_by_the_term_that_fails_and_its_values(
    requirements: str, reason: str
) -> None:
    assert reason in mismatch(requirements)


def test_what_is_measured_goes_before_what_was_asked_for() -> None:
    here = config(node={"gpunumber": 1, "disks": 3})
    assert dict(node_properties(here, {"GPUNumber": 2})) == {"gpunumber": 2, "disks": 3}


def test_longer_lists_than_a_request_may_have_are_left_out() -> None:
    long = tuple(str(number) for number in range(LISTED_LIMIT + 1))
    assert node_properties(config(), {"Long": long, "Short": long[1:]}) == (("short", long[1:]),)


def test_this_machine_is_measured(tmp_path: Path) -> None:
    (tmp_path / "APP1").touch()
    found = measure(config(software=str(tmp_path)), "namespaces", "cgroup")
    assert isinstance(found["GlueHostMainMemoryRAMSize"], int)
    assert found["GlueHostApplicationSoftwareRunTimeEnvironment"] == ("APP1",)
    assert (found["WMSIsolation"], found["WMSLimits"]) == ("namespaces", "cgroup")
    assert "GlueHostApplicationSoftwareRunTimeEnvironment" not in measure(config(), "none", "sampled")


def test_clocks_and_gpus_are_read(tmp_path: Path) -> None:
    assert clock_mhz("cpu MHz\t\t: 2499.998\ncpu MHz : 3000.1\n") == 3000
    assert clock_mhz("Features : fp") == 0
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    assert gpus_of({}, tmp_path) == ("0", "1")
    assert gpus_of({}, tmp_path / "none", lambda: "GPU 0: x (UUID: GPU-1)") == ()
    assert gpus_of({"CUDA_VISIBLE_DEVICES": "GPU-8932, MIG-GPU-1/2/3,4"}, tmp_path) == (
        "GPU-8932",
        "MIG-GPU-1/2/3",
        "4",
    )
    assert gpus_of({"CUDA_VISIBLE_DEVICES": "1,-1,2"}, tmp_path) == ("1",)
    assert gpus_of({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == ()


LISTED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 1g.5gb      Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-84711abb-c7d1-15a0-7b3e-3a3d2d1d9f36)
"""


def test_a_gpu_that_is_divided_is_no_device_itself(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    whole, parts = (
        "GPU-84711abb-c7d1-15a0-7b3e-3a3d2d1d9f36",
        ("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", "MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb"),
    )
    assert gpus_listed(LISTED) == gpus_of({}, tmp_path, lambda: LISTED) == (*parts, whole)


@pytest.mark.parametrize(
    ("names", "facts"),
    [
        (("GPU-1",), {"GPUMemory": 40960, "GPUCapability": 8.0, "GPUName": "NVIDIA A100"}),
        (("GPU-1", "GPU-2"), {"GPUMemory": 16384, "GPUCapability": 7.0}),
        (("GPU-2", "GPU-4"), {"GPUMemory": 16384, "GPUCapability": 7.0, "GPUName": "Tesla V100, 16 GB"}),
        (("0",), {"GPUMemory": 16384, "GPUCapability": 7.0}),
        (("MIG-3",), {}),
        ((), {}),
    ],
)
def test_what_every_gpu_has_is_told(names: tuple[str, ...], facts: dict[str, Value]) -> None:
    a100, v100 = "0, GPU-1a, 40960, 8.0, NVIDIA A100\n", "%d, GPU-%s, %d, 7.0, Tesla V100, 16 GB\n"
    assert gpu_facts(names, a100 + v100 % (1, "2b", 16384) + v100 % (2, "4d", 32768)) == facts


QUERIED = """
==============NVSMI LOG==============

Driver Version                            : 535.104.05
CUDA Version                              : %s

Attached GPUs                             : 1
"""


@pytest.mark.parametrize(
    ("text", "told"), [(QUERIED % "12.2", {"GPUCudaVersion": 12.2}), (QUERIED % "N/A", {}), ("", {})]
)
def test_the_newest_cuda_of_the_driver_is_told(text: str, told: dict[str, Value]) -> None:
    assert cuda_version(text) == told


def test_processors_are_shared_out_if_there_is_one_for_each_slot() -> None:
    mine = tuple(sorted(os.sched_getaffinity(0)))
    assert own_cpus(len(mine)) == mine
    assert own_cpus(len(mine) + 1) == ()


def test_a_pilot_may_be_sent_for_the_sake_of_all_that_is_measured() -> None:
    of_gpus = gpu_facts(("0",), "0, GPU-1, 40960, 8.0, NVIDIA A100\n") | cuda_version(QUERIED % "12.2")
    found = measure(config(), "namespaces", "cgroup", "podman 4.3.1") | of_gpus
    assert {name.lower() for name in found} <= node_facts.MEASURED
