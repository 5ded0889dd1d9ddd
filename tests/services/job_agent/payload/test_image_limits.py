"""Payloads in containers of images that the kernel holds to their limits, each in a cgroup with its container."""

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from services.job_agent.payload import cgroup
from services.job_agent.payload.delegation import AGENT, delegated_cgroup
from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.limit_enforcement import IMAGE_BYTES, IMAGE_TASKS, PayloadLimits
from services.job_agent.payload.podman import Podman
from services.job_agent.payload.run import Payload
from services.job_agent.payload.runtime_search import find_runtime
from services.job_agent.payload.workplace import CGROUP, Workplace
from tests.services.job_agent.payload.processes import DELEGATION_FAULT, WITH_CGROUPS, alive, new_tag, until
from wms.ids import AttemptId, Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

RUNTIME, FAULT = (None, "not asked") if DELEGATION_FAULT else find_runtime()
KEEPS = RUNTIME is not None and RUNTIME.keeps_cgroup
pytestmark = [
    WITH_CGROUPS,
    pytest.mark.skipif(not KEEPS, reason=f"NO IMAGES IN CGROUPS HERE: {FAULT or 'only with crun'}"),
]

MIB = 1024 * 1024
TOOLS = ("sh", "cat", "dd", "echo", "setsid", "sleep")
_ids = count(1)
New = Callable[..., Payload]


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    place = tempfile.mkdtemp()
    Path(place).chmod(0o755)
    root = Path(place, "root")
    for name in ("bin", "proc", "sys", "dev", "tmp", "var/tmp", "etc", "run"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "", root / "bin" / "busybox")
    for tool in TOOLS:
        (root / "bin" / tool).symlink_to("busybox")
    yield str(root)
    # Podman of another user than root makes directories in it that only root can remove.
    shutil.rmtree(place, ignore_errors=True)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def workplace(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Workplace]:
    data = tmp_path_factory.mktemp("agent")
    async with Workplace(
        root=data / "run",
        store=open_store(f"file://{data}/store"),
        site=SiteName("S"),
        pilot_id=PilotId("p"),
        isolation=PayloadIsolation(mode="auto"),
        images=RUNTIME,
    ) as entered:
        assert entered.cgroups.fault == ""
        assert entered.limit_words == CGROUP
        yield entered


@pytest_asyncio.fixture(loop_scope="session")
async def new(workplace: Workplace, image: str) -> AsyncIterator[New]:
    made: list[Payload] = []

    def make(script: str, *arguments: str, **limits: float) -> Payload:
        asked = JobDescription(
            executable="/bin/sh", arguments=("-c", script, "sh", *arguments), container=image
        )
        made.append(Payload(workplace, JobId(next(_ids)), Epoch(1), asked, PayloadLimits(**limits)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for payload in made:
        await payload.clean()
    assert [each.name for each in delegated_cgroup().iterdir() if each.is_dir()] == [AGENT]


def contained(tag: str) -> list[int]:
    """Return the processes that are `sleep TAG`, and not Podman with it among its arguments."""
    return [pid for pid in alive(tag) if Path(f"/proc/{pid}/comm").read_text().strip() == "sleep"]


async def test_its_container_is_in_its_cgroup_under_its_limits(new: New) -> None:
    tag = new_tag()
    payload = new('sleep "$1"', tag, memory_bytes=100 * MIB, living=50, processors=1)
    running = asyncio.create_task(payload.run())
    await until(lambda: payload._process)
    assert payload._process
    path = payload._process.cgroup
    await until(lambda: contained(tag))
    assert set(contained(tag)) <= set(cgroup.pids(path))
    assert Path(path, "memory.max").read_text() == f"{100 * MIB + IMAGE_BYTES}\n"
    assert Path(path, "pids.max").read_text() == f"{200 + IMAGE_TASKS}\n"
    assert Path(path, "cpu.max").read_text() == "100000 100000\n"
    payload.kill(Reason(Code.KILLED_BY_USER), grace=0)
    assert (await running).reason.code is Code.KILLED_BY_USER
    assert alive(tag) == []


async def test_the_kernel_ends_it_with_its_container_at_the_limit_of_memory(new: New) -> None:
    """Fault: a limit that the agent does not know, so that it cannot be faster than the kernel."""
    payload = new("sleep 1; dd if=/dev/zero of=/dev/null bs=400M count=1; echo had it")

    async def on_start(_: int) -> None:
        assert payload._process
        Path(payload._process.cgroup, "memory.max").write_text(str(100 * MIB))

    outcome = await payload.run(on_start)
    assert (outcome.reason.code, outcome.signal) == (Code.MEMORY_LIMIT, signal.SIGKILL)
    assert outcome.reason.text == "used all of the memory asked for, and the kernel ended it"
    assert outcome.stdout_tail == ""
    assert 90 * MIB < outcome.usage.max_rss_bytes <= 101 * MIB


async def test_a_fork_bomb_is_bounded_and_named(new: New) -> None:
    tag = new_tag()
    outcome = await new('while true; do setsid sleep "$1" & done', tag, living=25).run()
    assert outcome.reason.code is Code.PROCESS_LIMIT
    assert alive(tag) == []


async def test_processor_time_counts_of_those_that_nobody_waited_for(new: New) -> None:
    script = """
for n in 1 2; do
    setsid sh -c 'n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done; echo counted' &
done
sleep 100 & wait -n 2>/dev/null; wait $!
"""
    payload = new(script, cpu_seconds=1.0)
    outcome = await payload.run()
    assert outcome.reason.code is Code.CPU_LIMIT


async def test_a_container_that_leaves_the_cgroup_has_none(workplace: Workplace) -> None:
    attempt = AttemptId(JobId(next(_ids)), Epoch(1))
    assert workplace.cgroup(attempt, in_image=True) == workplace.cgroup(attempt, in_image=False) != ""
    workplace.images = Podman(("--runtime=runc",))
    assert workplace.cgroup(attempt, in_image=True) == ""
    workplace.images = RUNTIME


async def test_it_can_raise_no_limit(new: New) -> None:
    script = """
cd /sys/fs/cgroup 2>/dev/null || exit 0
for file in cgroup.procs cgroup.subtree_control memory.max pids.max; do
    echo 0 > $file && echo "wrote $file"
done
"""
    outcome = await new(script).run()
    assert "wrote" not in outcome.stdout_tail
