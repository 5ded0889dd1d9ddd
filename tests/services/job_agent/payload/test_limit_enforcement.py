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

from services.job_agent.payload import limit_enforcement, shepherd
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
    def make(code: str, *arguments: str, outputs: tuple[str, ...] = (), **limits: float) -> Payload:
        description = JobDescription(
            executable=sys.executable, arguments=("-c", code, *arguments), output_sandbox=outputs
        )
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


@pytest.mark.parametrize(
    "opening",
    [
        "file = file or open('big', 'wb', 0)",
        "file = file or deleted('big')",
        "file = open(f'part{number}', 'wb', 0)",
    ],
    ids=["one file", "deleted", "many files"],
)
async def test_a_fast_writer_is_ended_before_it_is_far_over_its_limit(new: New, opening: str) -> None:
    code = f"""
import os, time
def deleted(name):
    file = open(name, 'wb', 0)
    os.unlink(name)
    return file
file = None
for number in range(500):
    {opening}
    file.write(bytes(1 << 20))
time.sleep(100)
"""
    outcome = await new(code, disk_bytes=50 * MIB).run()
    assert (outcome.reason.code, outcome.signal) == (Code.DISK_LIMIT, signal.SIGTERM)
    used = re.match(r"used ([\d.]+) MiB", outcome.reason.text)
    assert used
    # A quarter on a quiet machine; half a second would be all of its 500.
    assert 50 <= float(used[1]) <= 150


async def test_files_in_memory_are_memory(new: New) -> None:
    code = """
import os, time
file = os.memfd_create("any")
for _ in range(150):
    os.write(file, bytes(1 << 20))
time.sleep(100)
"""
    outcome = await new(code, memory_bytes=100 * MIB).run()
    assert outcome.reason.code is Code.MEMORY_LIMIT
    assert outcome.usage.max_rss_bytes > 100 * MIB


async def test_what_is_nested_too_deep_to_be_counted_ends_it(new: New) -> None:
    code = """
import os, time
for _ in range(300):
    os.mkdir('d')
    os.chdir('d')
open('x', 'wb').write(bytes(1 << 20))
time.sleep(100)
"""
    outcome = await new(code, disk_bytes=10 * MIB).run()
    assert outcome.reason.code is Code.DISK_LIMIT
    assert "nested more than 200 directories" in outcome.reason.text


async def test_who_opens_more_files_than_can_be_counted_is_ended(
    new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_enforcement, "OPEN_FILES", 500)
    code = """
import os, time
opened = [os.open('/dev/null', os.O_RDONLY) for _ in range(600)]
time.sleep(100)
"""
    outcome = await new(code).run()
    assert outcome.reason.code is Code.DISK_LIMIT
    assert outcome.reason.text.startswith("had more than 500 files open")


@pytest.mark.parametrize(
    ("taking", "code"),
    [
        ("memory = bytearray(150 << 20)", Code.MEMORY_LIMIT),
        ("file = open('big', 'wb', 0); os.unlink('big'); file.write(bytes(20 << 20))", Code.DISK_LIMIT),
    ],
    ids=["memory", "deleted file"],
)
async def test_a_process_whose_first_thread_ended_counts(new: New, taking: str, code: Code) -> None:
    program = f"""
import ctypes, os, threading, time
def take():
    while ') Z ' not in open('/proc/self/stat').read():
        time.sleep(0.01)
    {taking}
    time.sleep(100)
threading.Thread(target=take).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    outcome = await new(program, memory_bytes=100 * MIB, disk_bytes=10 * MIB, wall_seconds=20).run()
    assert outcome.reason.code is code


async def test_names_of_files_are_bounded_though_they_are_of_one_file(new: New) -> None:
    code = """
import os, time
open('0', 'wb').close()
for number in range(1, 3_000):
    os.link('0', str(number))
time.sleep(100)
"""
    outcome = await new(code, disk_bytes=10 * MIB).run()
    assert 10 <= disk_mib_of_ten(outcome.reason) <= 20.1


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
        os.kill(payload._process.pid, signal.SIGUSR1)
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
    payload.kill(Reason(Code.KILLED_BY_USER, "killed by alice"), grace=0.3)
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


SAVES = """
import pathlib, signal, sys, time
def save(*_):
    for n in range(3):
        time.sleep(0.1)
    pathlib.Path('checkpoint').write_text('saved')
    print('saved', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('ready', flush=True)
"""
TAKES_TOO_MUCH: dict[str, tuple[str, dict[str, float], Code]] = {
    "wall": ("time.sleep(1000)", {"wall_seconds": 1.0}, Code.WALL_LIMIT),
    "cpu": ("while True: pass", {"cpu_seconds": 0.3}, Code.CPU_LIMIT),
    "memory": (
        "taken = bytearray(60 << 20)\nwhile True: time.sleep(1)",
        {"memory_bytes": 60 * MIB},
        Code.MEMORY_LIMIT,
    ),
    "disk": (
        "pathlib.Path('big').write_bytes(bytes(24 << 20))\nwhile True: time.sleep(1)",
        {"disk_bytes": 20 * MIB},
        Code.DISK_LIMIT,
    ),
}


@pytest.mark.parametrize("limit", TAKES_TOO_MUCH)
async def test_what_it_saves_when_a_limit_ends_it_is_kept(new: New, limit: str) -> None:
    code, limits, reason = TAKES_TOO_MUCH[limit]
    payload = new(SAVES + code, outputs=("checkpoint",), **limits)
    outcome = await payload.run()
    assert outcome.reason.code is reason
    assert (outcome.exit_code, outcome.unmatched, outcome.stdout_tail) == (0, (), "ready\nsaved\n")


async def test_a_shell_that_ends_at_once_leaves_its_program_the_grace(new: New) -> None:
    shell = "import os; os.execv('/bin/sh', ['sh', '-c', f'{sys.executable} -c \"$CODE\"; exit 1'])"
    code = f"import os, sys\nos.environ['CODE'] = {SAVES + 'time.sleep(1000)'!r}\n{shell}"
    payload = new(code, outputs=("checkpoint",))
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    payload.kill(Reason(Code.KILLED_BY_USER))
    outcome = await running
    assert (outcome.signal, outcome.unmatched) == (signal.SIGTERM, ())
    assert outcome.stdout_tail == "ready\nsaved\n"


async def test_what_hears_in_a_group_of_its_own_ends_at_once(new: New) -> None:
    tag = new_tag()
    payload = new(DAEMON + STAY, tag)
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    async with asyncio.timeout(20):
        payload.kill(Reason(Code.KILLED_BY_USER))
        await running
    assert alive(tag) == []


@pytest.mark.parametrize(
    ("take", "limit", "reason"),
    [
        ("taken.append(bytearray(2 << 20))", "memory_bytes", Code.MEMORY_LIMIT),
        ("file.write(bytes(2 << 20))", "disk_bytes", Code.DISK_LIMIT),
    ],
)
async def test_what_goes_on_to_take_more_in_its_grace_is_killed_at_once(
    new: New, take: str, limit: str, reason: Code
) -> None:
    code = f"""
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
taken, file = [], open('big', 'wb', 0)
while True:
    {take}
    time.sleep(0.01)
"""
    async with asyncio.timeout(20):
        outcome = await new(code, **{limit: 60 * MIB}).run()
    assert (outcome.reason.code, outcome.signal) == (reason, signal.SIGKILL)


async def test_a_second_kill_hastens_the_first_and_cannot_delay_it(new: New) -> None:
    payload = new(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('on', flush=True)\n" + STAY
    )
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    async with asyncio.timeout(20):
        payload.kill(Reason(Code.PILOT_STOPPED))
        payload.kill(Reason(Code.KILLED_BY_USER), grace=0.2)
        payload.kill(Reason(Code.KILLED_BY_USER))
        outcome = await running
    assert (outcome.reason.code, outcome.signal) == (Code.PILOT_STOPPED, signal.SIGKILL)


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
