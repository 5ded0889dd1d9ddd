"""Limits with real processes: each strikes, is named, and leaves alone what keeps it."""

import asyncio
import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from services.job_agent.payload import shepherd
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.run import Payload
from services.job_agent.payload.workplace import Workplace
from tests.services.job_agent.payload.processes import DAEMON, ISOLATIONS, STAY, a_line, alive, new_tag
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

MIB = 1024 * 1024
_ids = count(1)
New = Callable[..., Payload]


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=ISOLATIONS)
async def workplace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Workplace]:
    root = tmp_path_factory.mktemp("agent")
    store = open_store(f"file://{root}/store")
    async with Workplace(
        root=root / "run",
        store=store,
        site=SiteName("S"),
        pilot_id=PilotId("p"),
        isolation=request.param,
    ) as entered:
        yield entered


@pytest.fixture
def new(workplace: Workplace) -> New:
    def make(code: str, *arguments: str, **limits: float) -> Payload:
        description = JobDescription(executable=sys.executable, arguments=("-c", code, *arguments))
        return Payload(workplace, JobId(next(_ids)), Epoch(1), description, PayloadLimits(**limits))  # type: ignore[arg-type]

    return make


async def test_cpu_time_is_limited(new: New) -> None:
    outcome = await new("while True: pass", cpu_seconds=0.5).run()
    assert outcome.reason.code is Code.CPU_LIMIT
    assert outcome.reason.text.endswith("of the 0.5 s of CPU time asked for")
    assert outcome.signal == signal.SIGTERM
    assert 0.5 < outcome.usage.cpu_user_seconds + outcome.usage.cpu_system_seconds < 5


async def test_cpu_time_of_ended_children_counts(new: New) -> None:
    code = """
import os, time
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.1
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()
"""
    outcome = await new(code, cpu_seconds=0.5).run()
    assert outcome.reason.code is Code.CPU_LIMIT


async def test_cpu_time_of_ended_orphans_counts(new: New) -> None:
    code = """
import os, time
while True:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            end = time.process_time() + 0.1
            while time.process_time() < end: pass
        os._exit(0)
    os.wait()
    time.sleep(0.1)
"""
    outcome = await new(code, cpu_seconds=0.5).run()
    assert outcome.reason.code is Code.CPU_LIMIT
    assert outcome.usage.cpu_user_seconds + outcome.usage.cpu_system_seconds > 0.5


async def test_wall_time_is_limited(new: New) -> None:
    outcome = await new("import time; time.sleep(100)", wall_seconds=0.5).run()
    assert outcome.reason == Reason(
        Code.WALL_LIMIT, "ran for the 0.5 s of wall time asked for and had not ended"
    )
    assert 0.5 <= outcome.usage.wall_seconds < 1.5


async def test_memory_is_limited(new: New) -> None:
    outcome = await new(
        "b = bytearray(150 << 20); import time; time.sleep(100)", memory_bytes=100 * MIB
    ).run()
    assert outcome.reason.code is Code.MEMORY_LIMIT
    assert outcome.reason.text.startswith("used 1")
    assert outcome.reason.text.endswith("of the 100.0 MiB of memory asked for")
    assert outcome.usage.max_rss_bytes > 100 * MIB


async def test_memory_of_all_its_processes_counts(new: New) -> None:
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        break
b = bytearray(40 << 20)
time.sleep(100)
"""
    outcome = await new(code, memory_bytes=120 * MIB).run()
    assert outcome.reason.code is Code.MEMORY_LIMIT


async def test_memory_that_processes_share_counts_once(new: New) -> None:
    code = """
import os, time
b = bytearray(60 << 20)
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        time.sleep(1)
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
"""
    outcome = await new(code, memory_bytes=120 * MIB).run()
    assert outcome.reason.code is Code.DONE


def disk_mib_of_ten(reason: Reason) -> float:
    """Return what was used of 10 MiB of disk. On a busy machine a file may be measured while it is written."""
    assert reason.code is Code.DISK_LIMIT
    used = re.fullmatch(r"used ([\d.]+) MiB of the 10\.0 MiB of disk asked for", reason.text)
    assert used is not None, reason.text
    return float(used[1])


async def test_disk_is_limited(new: New) -> None:
    code = "f = open('big', 'wb'); f.write(bytes(20 << 20)); f.flush(); import time; time.sleep(100)"
    outcome = await new(code, disk_bytes=10 * MIB).run()
    assert 10 <= disk_mib_of_ten(outcome.reason) <= 20.1
    assert outcome.usage.disk_bytes > 10 * MIB


async def test_processes_are_limited_and_none_outruns_its_end(new: New) -> None:
    tag = new_tag()
    code = """
import os
# Each fork takes a byte: without a limit 2,000 processes wait at the end, and the machine of the tests lives.
tokens, store = os.pipe()
os.write(store, b'.' * 2_000)
while True:
    os.read(tokens, 1)
    try:
        os.fork()
    except OSError:
        pass
"""
    outcome = await new(code, tag, living=50).run()
    assert outcome.reason.code is Code.PROCESS_LIMIT
    assert outcome.reason.text.endswith("processes of the 50 that it may have")
    assert outcome.signal == signal.SIGKILL
    assert alive(tag) == []


async def test_scratch_counts_and_holes_and_second_names_do_not(new: New) -> None:
    code = """
import os, time
with open('hole', 'wb') as f: f.truncate(1 << 30)
with open('real', 'wb') as f: f.write(bytes(6 << 20))
os.link('real', 'again')
time.sleep(1.2)
with open(os.environ['TMPDIR'] + '/more', 'wb') as f: f.write(bytes(6 << 20))
time.sleep(100)
"""
    outcome = await new(code, disk_bytes=10 * MIB).run()
    assert 10 <= disk_mib_of_ten(outcome.reason) <= 12.1
    assert outcome.usage.wall_seconds > 1.2


async def test_what_stays_within_its_limits_is_left_alone(new: New) -> None:
    outcome = await new(
        "import time; time.sleep(0.7)",
        cpu_seconds=100, wall_seconds=100, memory_bytes=500 * MIB, disk_bytes=10 * MIB, processes=10_000,
        file_bytes=MIB,
    ).run()  # fmt: skip
    assert outcome.reason.code is Code.DONE


async def test_one_file_is_limited_by_the_kernel(new: New) -> None:
    outcome = await new("open('big', 'wb').write(bytes(2 << 20))", file_bytes=MIB).run()
    assert outcome.reason.code is Code.EXIT_CODE
    assert "File too large" in outcome.stderr_tail


@contextlib.asynccontextmanager
async def all_threads_taken() -> AsyncIterator[None]:
    """Fault: transfers that do not end hold every thread of the loop's own."""
    release = threading.Event()
    loop = asyncio.get_running_loop()
    held = [loop.run_in_executor(None, release.wait) for _ in range(64)]
    try:
        yield
    finally:
        release.set()
        await asyncio.gather(*held)


async def test_limits_and_tails_wait_for_no_transfer(new: New) -> None:
    code = """
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print('ready', flush=True)
signal.sigwait([signal.SIGUSR1])
b = bytearray(150 << 20)
time.sleep(1000)
"""
    payload = new(code, memory_bytes=100 * MIB)
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    assert payload._process
    async with all_threads_taken(), asyncio.timeout(60):
        payload._process.signal(signal.SIGUSR1)
        ended = await payload._process.ended
        assert (await payload.tail("stdout", 10)).data == b"ready\n"
    assert ended.signal == signal.SIGTERM
    assert (await running).reason.code is Code.MEMORY_LIMIT


async def test_a_shepherds_end_is_seen_to_whatever_is_transferred(new: New, workplace: Workplace) -> None:
    payload = new("print('ready', flush=True); import time; time.sleep(1000)")
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    assert payload._process
    assert workplace.processes.shepherd_pid
    async with all_threads_taken(), asyncio.timeout(60):
        os.kill(workplace.processes.shepherd_pid, signal.SIGKILL)
        assert (await payload._process.ended).lost
    assert (await running).reason.code is Code.AGENT_ERROR


async def test_a_kill_reaches_it_though_it_will_not_hear(new: New) -> None:
    tag = new_tag()
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + DAEMON + STAY
    payload = new(code, tag)
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    assert alive(tag)
    payload.kill(Reason(Code.KILLED_BY_USER, "killed by alice"))
    assert payload._process
    await payload._process.ended
    outcome = await running
    assert outcome.reason == Reason(Code.KILLED_BY_USER, "killed by alice")
    assert outcome.signal == signal.SIGKILL
    assert outcome.stdout_tail == "ready\n"
    assert alive(tag) == []


async def test_it_may_tidy_up_within_the_grace(new: New) -> None:
    code = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print('tidied', flush=True), sys.exit(7)))
print('ready', flush=True)
time.sleep(100)
"""
    payload = new(code)
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    payload.kill(Reason(Code.PILOT_STOPPED), grace=10)
    outcome = await running
    assert (outcome.exit_code, outcome.stdout_tail) == (7, "ready\ntidied\n")
    assert outcome.reason.code is Code.PILOT_STOPPED


async def test_without_grace_and_output_it_is_gone_at_once(new: New) -> None:
    payload = new("import time; time.sleep(100)")
    started = asyncio.Event()

    async def on_start(_: int) -> None:
        started.set()

    running = asyncio.create_task(payload.run(on_start))
    await started.wait()
    payload.kill(Reason(Code.LEASE_EXPIRED), grace=0, keep_output=False)
    outcome = await running
    assert (outcome.signal, outcome.output, outcome.reason.code) == (signal.SIGKILL, None, Code.LEASE_EXPIRED)


async def test_killed_before_it_starts_it_never_does(new: New) -> None:
    payload = new("open('ran', 'w')")
    payload.kill(Reason(Code.KILLED_BY_USER))
    outcome = await payload.run()
    assert outcome.reason.code is Code.KILLED_BY_USER
    assert not (payload._place.work / "ran").exists()


async def test_a_kill_after_the_end_changes_nothing(new: New) -> None:
    payload = new("pass")
    outcome = await payload.run()
    payload.kill(Reason(Code.KILLED_BY_USER))
    assert outcome.reason.code is Code.DONE


async def test_a_cancelled_run_kills(new: New) -> None:
    tag = new_tag()
    payload = new(DAEMON + STAY, tag)
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert payload._process
    await payload._process.ended
    assert alive(tag) == []


async def test_a_deadline_strikes_unless_it_is_moved(new: New) -> None:
    payload = new("import time; time.sleep(1)")
    payload.live_until(shepherd.now() + 0.5)
    moved = new("import time; time.sleep(1)")
    moved.live_until(shepherd.now() + 0.5)

    async def on_start(_: int) -> None:
        moved.live_until(shepherd.now() + 60)

    struck, left = await asyncio.gather(payload.run(), moved.run(on_start))
    assert struck.reason.code is Code.LEASE_EXPIRED
    assert struck.signal == signal.SIGKILL
    assert left.reason.code is Code.DONE


async def test_its_place_holds_nothing_that_is_not_its_own(new: New, workplace: Workplace) -> None:
    payload = new("import os; print(os.listdir('..'), os.listdir('.'))")
    outcome = await payload.run()
    assert outcome.stdout_tail == "['work', 'tmp'] []\n" or outcome.stdout_tail == "['tmp', 'work'] []\n"
    assert Path(workplace.root).stat().st_mode & 0o777 == 0o700
