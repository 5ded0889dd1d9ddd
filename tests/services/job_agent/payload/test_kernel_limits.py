"""Payloads that are held to their limits by the kernel, each in a cgroup of its own: what harms stays theirs, and is named."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from services.job_agent.payload import cgroup
from services.job_agent.payload.delegation import AGENT, delegated_cgroup
from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.run import Payload
from services.job_agent.payload.workplace import CGROUP, Workplace
from tests.hostile import payloads
from tests.services.job_agent.payload.processes import (
    DAEMON,
    ISOLATIONS,
    STAY,
    WITH_CGROUPS,
    a_line,
    alive,
    new_tag,
    until,
)
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

pytestmark = WITH_CGROUPS

MIB = 1024 * 1024
_ids = count(1)
New = Callable[..., Payload]


def workplace_in(root: Path, isolation: PayloadIsolation) -> Workplace:
    store = open_store(f"file://{root}/store")
    return Workplace(
        root=root / "run", store=store, site=SiteName("S"), pilot_id=PilotId("p"), isolation=isolation
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=ISOLATIONS)
async def workplace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Workplace]:
    async with workplace_in(tmp_path_factory.mktemp("agent"), request.param) as entered:
        assert entered.cgroups.fault == ""
        assert entered.limit_words == CGROUP
        yield entered


@pytest.fixture
def new(workplace: Workplace) -> New:
    def make(code: str, *arguments: str, **limits: float) -> Payload:
        description = JobDescription(executable=sys.executable, arguments=("-c", code, *arguments))
        return Payload(workplace, JobId(next(_ids)), Epoch(1), description, PayloadLimits(**limits))  # type: ignore[arg-type]

    return make


@pytest.fixture(autouse=True)
def nothing_is_left(workplace: Workplace) -> Iterator[None]:
    yield
    assert left() == [AGENT]


def left() -> list[str]:
    """Return the cgroups below the one that is delegated to this test."""
    return [each.name for each in delegated_cgroup().iterdir() if each.is_dir()]


async def test_memory_that_is_taken_at_once_is_never_had_and_named(new: New) -> None:
    outcome = await new("b = bytearray(500 << 20); print('had it')", memory_bytes=64 * MIB).run()
    assert (outcome.reason.code, outcome.signal) == (Code.MEMORY_LIMIT, signal.SIGKILL)
    assert outcome.reason.text == "used all of the 64.0 MiB of memory asked for, and the kernel ended it"
    assert outcome.stdout_tail == ""
    assert 60 * MIB < outcome.usage.max_rss_bytes < 80 * MIB


async def test_a_hog_in_many_processes_ends_whole(new: New) -> None:
    tag = new_tag()
    code = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        break
held = []
while True:
    held.append(b'x' * (1 << 20))
    time.sleep(0.01)
"""
    outcome = await new(code, tag, memory_bytes=80 * MIB).run()
    assert outcome.reason.code is Code.MEMORY_LIMIT
    assert alive(tag) == []


async def test_cached_files_are_no_memory(new: New) -> None:
    code = """
import pathlib, time
read = 0
for path in pathlib.Path("/usr/lib").rglob("*.so*"):
    if path.is_file():
        read += len(path.read_bytes())
    if read > 100 << 20:
        break
print(read > 60 << 20)
time.sleep(0.5)
"""
    outcome = await new(code, memory_bytes=60 * MIB).run()
    assert (outcome.reason.code, outcome.stdout_tail) == (Code.DONE, "True\n")
    assert outcome.usage.max_rss_bytes < 60 * MIB


async def test_a_fork_bomb_is_bounded_and_named(new: New) -> None:
    tag, most = new_tag(), [0]
    payload = new(payloads.FORK, tag, living=25)
    running = asyncio.create_task(payload.run())
    while not running.done():
        if payload._process:
            most.append(len(cgroup.pids(payload._process.cgroup)))
        await asyncio.sleep(0)
    outcome = await running
    assert outcome.reason.code is Code.PROCESS_LIMIT
    assert outcome.reason.text.endswith("processes of the 25 that it may have")
    assert max(most) <= 100
    assert alive(tag) == []


async def test_one_processor_is_one_processor_of_time(new: New) -> None:
    """On a machine with one alone it says that the limit is set; on others that it is kept, too."""
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0: break
end = time.monotonic() + 1.5
while time.monotonic() < end: pass
"""
    payload = new(code, processors=1)
    running = asyncio.create_task(payload.run())
    await until(lambda: payload._process)
    assert payload._process
    assert Path(payload._process.cgroup, "cpu.max").read_text() == "100000 100000\n"
    outcome = await running
    usage = outcome.usage
    assert usage.cpu_user_seconds + usage.cpu_system_seconds < 1.2 * usage.wall_seconds


async def test_half_a_processor_is_kept_to(new: New, workplace: Workplace) -> None:
    """Fault: a limit below any job's, so that one processor is enough to see it kept."""
    payload = new("import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass")

    async def on_start(_: int) -> None:
        assert payload._process
        Path(payload._process.cgroup, "cpu.max").write_text("20000 100000")

    usage = (await payload.run(on_start)).usage
    assert usage.cpu_user_seconds + usage.cpu_system_seconds < 0.5 * usage.wall_seconds


async def test_processor_time_counts_of_those_that_nobody_waited_for(new: New) -> None:
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            end = time.process_time() + 0.2
            while time.process_time() < end: pass
        os._exit(0)
time.sleep(1.5)
"""
    usage = (await new(code).run()).usage
    assert 0.6 <= usage.cpu_user_seconds + usage.cpu_system_seconds < 3


async def test_a_kill_ends_daemons_that_shed_every_mark(new: New) -> None:
    tag = new_tag()
    shed = "import resource; resource.setrlimit(resource.RLIMIT_RTTIME, (1, 1))\n"
    payload = new(shed + DAEMON + STAY, tag)
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    assert len(alive(tag)) == 2
    payload.kill(Reason(Code.KILLED_BY_USER), grace=0)
    assert (await running).reason.code is Code.KILLED_BY_USER
    assert alive(tag) == []


async def test_it_cannot_leave_its_cgroup_nor_raise_its_limits(new: New, workplace: Workplace) -> None:
    if workplace.isolation.mode == "none":
        pytest.skip("payloads that are not isolated have the pilot's rights")
    base = delegated_cgroup()
    code = f"""
import glob, os, subprocess
own = [line for line in open('/proc/self/cgroup') if line.startswith('0::')][0][3:].strip()
for path in glob.glob({str(base)!r} + '/**/*', recursive=True):
    if path.endswith(('memory.max', 'pids.max', 'cgroup.procs', 'cgroup.kill')):
        try:
            open(path, 'w').write('max' if path.endswith('max') else '0')
            print('wrote', path)
        except OSError:
            pass
# In namespaces of its own it may mount its cgroup, and finds no limits there.
print(subprocess.run(['unshare', '-UrmC', 'sh', '-c', 'mount -t cgroup2 none /mnt && ls /mnt | grep max$'], capture_output=True, text=True).stdout)
print(own)
"""
    outcome = await new(code, memory_bytes=100 * MIB).run()
    *found, own = outcome.stdout_tail.split()
    assert own.endswith("/payload")
    assert set(found) <= {"cgroup.max.depth", "cgroup.max.descendants"}


async def test_the_end_of_a_shepherd_leaves_no_cgroup(new: New, workplace: Workplace) -> None:
    tag = new_tag()
    payload = new(DAEMON + STAY, tag)
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    assert workplace.processes.shepherd_pid
    os.kill(workplace.processes.shepherd_pid, signal.SIGKILL)
    assert (await running).reason.code is Code.AGENT_ERROR
    assert alive(tag) == []
    assert (await new("print(1)").run()).stdout_tail == "1\n"
    await payload.clean()


async def test_a_program_that_does_not_start_leaves_no_cgroup(workplace: Workplace) -> None:
    description = JobDescription(executable="/no/such/program")
    outcome = await Payload(workplace, JobId(next(_ids)), Epoch(1), description).run()
    assert outcome.reason.code is Code.NOT_STARTED
    assert "no such program" in outcome.reason.text
