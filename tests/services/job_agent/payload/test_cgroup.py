"""The cgroup of one payload, on a kernel whose cgroups are delegated to the test: its limits, its processes, its end."""

import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from services.job_agent.payload import cgroup
from services.job_agent.payload.delegation import Delegation
from tests.services.job_agent.payload.processes import WITH_CGROUPS
from wms.ids import AttemptId, Epoch, JobId

pytestmark = WITH_CGROUPS
LIMITS = {"memory.max": str(64 * 2**20), "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "20"}


@pytest_asyncio.fixture(loop_scope="session")
async def path() -> AsyncIterator[str]:
    async with Delegation() as cgroups:
        assert cgroups.fault == ""
        yield cgroups.path(AttemptId(JobId(1), Epoch(1)))


def forked(path: str, act: Callable[[], object]) -> int:
    """Fork a process into the cgroup that acts and waits to be killed."""
    reading, writing = os.pipe()
    pid = cgroup.fork_into(path)
    if pid == 0:
        try:
            act()
            os.write(writing, b".")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        file.read(1)
    return pid


async def test_it_has_the_limits_that_the_kernel_knows(path: str) -> None:
    cgroup.make(path, {**LIMITS, "memory.no_such": "1"})
    assert {name: Path(path, name).read_text().strip() for name in LIMITS} == LIMITS
    assert not Path(path, "memory.no_such").exists()
    assert cgroup.remove(path)
    assert not Path(path).exists()


async def test_one_that_the_kernel_refuses_leaves_nothing(path: str) -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        cgroup.make(path, {"pids.max": "many"})
    assert not Path(path).exists()


async def test_a_fork_is_in_it_from_its_first_instruction(path: str) -> None:
    cgroup.make(path, LIMITS)
    pid = forked(
        path, lambda: Path(f"/proc/{os.getpid()}/cgroup").read_text().endswith("/payload\n") or os._exit(2)
    )
    assert cgroup.pids(path) == [pid]
    assert not cgroup.remove(path), "one with processes stays"
    cgroup.kill(path)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert cgroup.remove(path)


async def test_what_its_processes_used_counts_though_they_have_ended(path: str) -> None:
    cgroup.make(path, LIMITS)

    held = []

    def work() -> None:
        held.append(bytearray(8 * 2**20))
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass

    pid = forked(path, work)
    assert cgroup.cpu_seconds(path) >= 0.3
    assert cgroup.memory_bytes(path) > 8 * 2**20
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    used = cgroup.CgroupUse(path)
    assert 0.3 <= used.user_seconds + used.system_seconds < 3
    assert used.peak_bytes > 8 * 2**20
    assert not used.out_of_memory


async def test_memory_beyond_the_limit_ends_all_of_it(path: str) -> None:
    cgroup.make(path, LIMITS)
    beside = forked(path, lambda: None)
    hog = forked(path, lambda: bytearray(200 * 2**20))
    ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in (hog, beside)]
    assert ends == [-signal.SIGKILL] * 2
    assert cgroup.CgroupUse(path).out_of_memory


async def test_its_processes_can_make_no_cgroups_below_it(path: str) -> None:
    cgroup.make(path, LIMITS)
    with pytest.raises(OSError, match="temporarily unavailable"):
        Path(path, cgroup.INNER, "more").mkdir()


async def test_its_end_waits_for_what_it_killed(path: str) -> None:
    cgroup.make(path, LIMITS)
    pid = forked(path, lambda: None)
    assert cgroup.end(path, 5.0)
    assert not Path(path).exists()
    os.waitpid(pid, 0)
    assert cgroup.end(path, 0.0), "one that is gone"
    assert (cgroup.pids(path), cgroup.cpu_seconds(path), cgroup.memory_bytes(path)) == ([], 0.0, 0)
