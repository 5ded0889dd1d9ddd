"""The limits of a payload, from its description."""

import math

import pytest

from services.job_agent.payload.limit_enforcement import (
    IMAGE_BYTES,
    IMAGE_TASKS,
    PayloadLimits,
    PayloadUsage,
    enforce,
    exceeded_limit,
    in_grace,
    kernel_limits,
    limits_of,
    nearness,
    size,
)
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription


def test_the_most_memory_is_the_limit_where_it_is_said() -> None:
    assert limits_of(JobDescription(executable="x", memory_mb=1, max_memory_mb=2)).memory_bytes == 2 * 2**20
    assert limits_of(JobDescription(executable="x", memory_mb=1)).memory_bytes == 2**20
    assert limits_of(JobDescription(executable="x", max_memory_mb=2)).memory_bytes == 2 * 2**20


def test_limits_come_from_the_description() -> None:
    limits = limits_of(JobDescription(executable="x", cpu_time=60, memory_mb=2048, disk_mb=10, wall_time=90))
    assert (limits.cpu_seconds, limits.wall_seconds) == (60, 90)
    assert (limits.memory_bytes, limits.disk_bytes) == (2 << 30, 10 << 20)
    open_ended = limits_of(JobDescription(executable="x"))
    assert (limits.living, limits.tasks) == (1_000, 4_000)
    assert limits_of(JobDescription(executable="x", processors=8)).living == 8_000
    assert (open_ended.wall_seconds, open_ended.memory_bytes, open_ended.disk_bytes) == (None, None, None)
    assert limits_of(JobDescription(executable="x", processors=3), 1_000).disk_bytes == 3_000
    assert limits_of(JobDescription(executable="x", disk_mb=10), 1_000).disk_bytes == 10 << 20


def test_a_cgroup_has_the_limits_of_its_job() -> None:
    limits = kernel_limits(limits_of(JobDescription(executable="x", memory_mb=64, processors=4)))
    assert limits == {
        "memory.max": str(64 << 20),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "16000",
        "cpu.max": "400000 100000",
        "cpu.weight": "400",
    }
    assert kernel_limits(PayloadLimits())["memory.max"] == "max"
    assert kernel_limits(PayloadLimits(processors=1_000))["cpu.weight"] == "10000"


def test_a_cgroup_with_podman_in_it_has_room_for_podman() -> None:
    limits = kernel_limits(PayloadLimits(memory_bytes=100 << 20, living=10), in_image=True)
    assert (limits["memory.max"], limits["pids.max"]) == (
        str((100 << 20) + IMAGE_BYTES),
        str(40 + IMAGE_TASKS),
    )
    assert kernel_limits(PayloadLimits(), in_image=True)["memory.max"] == "max"


@pytest.mark.parametrize(
    ("usage", "code", "text"),
    [
        (
            PayloadUsage(memory_bytes=2_254_857_830),
            Code.MEMORY_LIMIT,
            "used 2.1 GiB of the 2.0 GiB of memory asked for",
        ),
        (
            PayloadUsage(disk_bytes=12 << 20),
            Code.DISK_LIMIT,
            "used 12.0 MiB of the 10.0 MiB of disk asked for",
        ),
        (
            PayloadUsage(processes=1_001),
            Code.PROCESS_LIMIT,
            "had 1,001 processes of the 1,000 that it may have",
        ),
        (
            PayloadUsage(cpu_seconds=601),
            Code.CPU_LIMIT,
            "used 10.0 min of the 10.0 min of CPU time asked for",
        ),
    ],
)
def test_the_limit_that_struck_is_named(usage: PayloadUsage, code: Code, text: str) -> None:
    limits = PayloadLimits(memory_bytes=2 << 30, disk_bytes=10 << 20, cpu_seconds=600)
    reason = exceeded_limit(limits, usage)
    assert reason
    assert (reason.code, reason.text) == (code, text)
    assert nearness(limits, usage) > 1
    assert exceeded_limit(PayloadLimits(living=1_001), usage) is None


def test_at_a_limit_is_within_it() -> None:
    limits = PayloadLimits(memory_bytes=100, disk_bytes=100, cpu_seconds=1)
    assert exceeded_limit(limits, PayloadUsage(memory_bytes=100, disk_bytes=100, cpu_seconds=1)) is None
    assert nearness(limits, PayloadUsage(memory_bytes=50)) == 0.5


@pytest.mark.parametrize(("asked", "given"), [(None, 30.0), (0, 0.0), (45, 45.0), (600, 300.0)])
def test_a_job_has_the_grace_that_it_asks_for_up_to_the_sites_most(asked: int | None, given: float) -> None:
    description = JobDescription(executable="x", grace_time=asked)
    assert limits_of(description, grace_most=300.0).grace_seconds == given


def test_in_its_grace_it_may_write_but_not_go_on_taking() -> None:
    limits = PayloadLimits(memory_bytes=100, disk_bytes=100, cpu_seconds=1)
    bounds = in_grace(limits, PayloadUsage(memory_bytes=120, disk_bytes=60, cpu_seconds=2))
    assert (bounds.memory_bytes, bounds.disk_bytes, bounds.cpu_seconds) == (150, 125, None)
    assert in_grace(PayloadLimits(), PayloadUsage(memory_bytes=120)).memory_bytes is None


def test_sizes_for_people() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1.5 * 1024**2, 2.1 * 1024**3)] == [
        "0 B", "1023 B", "1.0 KiB", "1.5 MiB", "2.1 GiB"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "killed"),
    [
        (PayloadUsage(memory_bytes=101), [(Code.MEMORY_LIMIT, math.inf)]),
        (PayloadUsage(processes=11), [(Code.PROCESS_LIMIT, 0.0)]),
        (PayloadUsage(cpu_seconds=61), [(Code.CPU_LIMIT, math.inf)]),
        (PayloadUsage(memory_bytes=100, processes=10, cpu_seconds=60), []),
    ],
)
def test_who_forks_without_end_is_killed_without_grace(
    usage: PayloadUsage, killed: list[tuple[Code, float]]
) -> None:
    calls: list[tuple[str, float]] = []

    def kill(reason: Reason, *, grace: float) -> None:
        calls.append((reason.code, grace))

    enforce(PayloadLimits(memory_bytes=100, cpu_seconds=60, living=10), usage, kill)
    assert calls == killed
