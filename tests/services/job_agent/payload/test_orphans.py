"""Nothing stays behind: not when a payload ends, nor when the agent or its shepherd is killed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from services.job_agent.payload import shepherd
from services.job_agent.payload.process_control import Processes
from services.job_agent.payload.run import Payload
from services.job_agent.payload.shepherd_messages import SpawnOrder
from services.job_agent.payload.workplace import Workplace
from tests.services.job_agent.payload.processes import DAEMON, ISOLATIONS, STAY, alive, new_tag, until
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

_ids = count(1)

AGENT = """
import asyncio, os, signal, sys
from pathlib import Path
from services.job_agent.payload import shepherd
from services.job_agent.payload.run import Payload
from services.job_agent.payload.workplace import Workplace
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

async def main(root, tag, code, lease):
    store = open_store(f"file://{root}/store")
    async with Workplace(root=Path(root), store=store, site="S", pilot_id="p") as workplace:
        description = JobDescription(executable=sys.executable, arguments=("-c", code, tag))
        payload = Payload(workplace, 1, 1, description)
        running = asyncio.create_task(payload.run())
        while not (await payload.tail("stdout", 10)).data:
            await asyncio.sleep(0.01)
        if lease:
            payload.live_until(shepherd.now() + float(lease))
        print(workplace.processes.shepherd_pid, flush=True)
        if lease:
            os.kill(os.getpid(), signal.SIGSTOP)
        await running

asyncio.run(main(*sys.argv[1:]))
"""


@pytest_asyncio.fixture(loop_scope="session", params=ISOLATIONS)
async def workplace(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Workplace]:
    store = open_store(f"file://{tmp_path}/store")
    async with Workplace(
        root=tmp_path / "run",
        store=store,
        site=SiteName("S"),
        pilot_id=PilotId("p"),
        isolation=request.param,
    ) as entered:
        yield entered


def python(workplace: Workplace, code: str, *arguments: str) -> Payload:
    description = JobDescription(executable=sys.executable, arguments=("-c", code, *arguments))
    return Payload(workplace, JobId(next(_ids)), Epoch(1), description)


async def test_a_daemon_does_not_outlive_a_normal_end(workplace: Workplace) -> None:
    tag = new_tag()
    outcome = await python(workplace, DAEMON, tag).run()
    assert (outcome.reason.code, outcome.stdout_tail) == (Code.DONE, "ready\n")
    assert alive(tag) == []


async def test_a_background_process_that_holds_the_outputs_does_not_delay_the_end(
    workplace: Workplace,
) -> None:
    tag = new_tag()
    description = JobDescription(executable="sh", arguments=("-c", f"sleep {tag} & echo done"))
    outcome = await asyncio.wait_for(Payload(workplace, JobId(next(_ids)), Epoch(1), description).run(), 5)
    assert outcome.stdout_tail == "done\n"
    assert alive(tag) == []


async def test_the_end_of_one_leaves_the_daemons_of_another(workplace: Workplace) -> None:
    theirs, ours = new_tag(), new_tag()
    other = python(workplace, DAEMON + STAY, theirs)
    running = asyncio.create_task(other.run())
    await until(lambda: alive(theirs) and other._place.stdout.read(10).data)
    await python(workplace, DAEMON, ours).run()
    assert alive(ours) == []
    assert len(alive(theirs)) == 2
    other.kill(Reason(Code.KILLED_BY_USER))
    await running
    assert alive(theirs) == []


async def test_whoever_sheds_the_mark_is_found_as_a_stray(workplace: Workplace) -> None:
    tag = new_tag()
    code = "import resource; resource.setrlimit(resource.RLIMIT_RTTIME, (12345, 12345))\n" + DAEMON
    outcome = await python(workplace, code, tag).run()
    assert outcome.stdout_tail == "ready\n"
    assert alive(tag) == []


async def test_a_whole_family_of_daemons_goes(workplace: Workplace) -> None:
    tag = new_tag()
    script = f"for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'sleep {tag} & sleep {tag} & wait' &) ; done"
    description = JobDescription(executable="sh", arguments=("-c", script))
    await Payload(workplace, JobId(next(_ids)), Epoch(1), description).run()
    assert alive(tag) == []


@pytest.fixture
def agent(tmp_path: Path) -> Iterator["AgentProgram"]:
    program = AgentProgram(tmp_path)
    yield program
    program.end()


class AgentProgram:
    """A small agent as a process of its own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[str] | None = None
        self.shepherd_pid = 0

    async def start(self, tag: str, lease: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", AGENT, str(self._root), tag, DAEMON + STAY, lease],
            stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4],
        )  # fmt: skip
        assert self._process.stdout
        self.shepherd_pid = int(await asyncio.to_thread(self._process.stdout.readline))

    @property
    def status(self) -> str:
        assert self._process
        return psutil.Process(self._process.pid).status()

    def signal(self, number: int) -> None:
        assert self._process
        self._process.send_signal(number)

    def end(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout
            self._process.stdout.close()


async def test_kill_9_of_the_agent_leaves_nothing(agent: AgentProgram) -> None:
    tag = new_tag()
    await agent.start(tag)
    # The agent has the tag among its arguments too; main process and daemon are the other two.
    assert len(alive(tag)) == 3
    agent.signal(signal.SIGKILL)
    await until(lambda: not alive(tag) and not running(agent.shepherd_pid), 3)


async def test_a_stopped_agent_cannot_keep_its_payload_past_the_lease(agent: AgentProgram) -> None:
    tag = new_tag()
    # It stops itself: on a busy machine the lease could end before we come to it.
    await agent.start(tag, lease="1.5")
    await until(lambda: len(alive(tag)) == 1)
    assert agent.status == psutil.STATUS_STOPPED
    agent.signal(signal.SIGCONT)


async def test_the_guard_ends_payloads_and_daemons_when_only_it_can(agent: AgentProgram) -> None:
    tag = new_tag()
    await agent.start(tag)
    agent.signal(signal.SIGSTOP)
    os.kill(agent.shepherd_pid, signal.SIGKILL)
    # The stopped agent.
    await until(lambda: len(alive(tag)) == 1, 3)
    agent.signal(signal.SIGCONT)
    await until(lambda: not alive(tag), 5)


async def test_kill_9_of_agent_and_shepherd_at_once_leaves_nothing(agent: AgentProgram) -> None:
    tag = new_tag()
    await agent.start(tag)
    guard = guard_of(agent.shepherd_pid)
    agent.signal(signal.SIGSTOP)
    os.kill(agent.shepherd_pid, signal.SIGSTOP)
    agent.signal(signal.SIGKILL)
    os.kill(agent.shepherd_pid, signal.SIGKILL)
    await until(lambda: not alive(tag) and not running(guard), 3)


async def test_a_guard_that_is_killed_is_replaced(agent: AgentProgram) -> None:
    tag = new_tag()
    await agent.start(tag)
    first = guard_of(agent.shepherd_pid)
    os.kill(first, signal.SIGKILL)
    await until(lambda: guard_of(agent.shepherd_pid) not in (0, first), 5)
    assert len(alive(tag)) == 3


def guard_of(pid: int) -> int:
    """Return the guard of this shepherd; 0 when it has none just now."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    named = [int(child) for child in children if Path(f"/proc/{child}/comm").read_text() == "wms-guard\n"]
    return named[0] if named else 0


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_kill_9_of_the_shepherd_ends_its_payloads_and_another_takes_over(workplace: Workplace) -> None:
    tag = new_tag()
    payload = python(workplace, DAEMON + STAY, tag)
    task = asyncio.create_task(payload.run())
    await until(lambda: len(alive(tag)) == 2 and payload._place.stdout.read(10).data)
    first = workplace.processes.shepherd_pid
    assert first
    os.kill(first, signal.SIGKILL)
    outcome = await asyncio.wait_for(task, 5)
    assert alive(tag) == []
    assert outcome.reason.code is Code.AGENT_ERROR
    assert "minds this node's payloads died" in outcome.reason.text
    assert outcome.stdout_tail == "ready\n"
    assert (await python(workplace, "print('again')").run()).stdout_tail == "again\n"
    assert workplace.processes.shepherd_pid != first


async def test_sigterm_to_the_shepherd_ends_its_payloads(workplace: Workplace) -> None:
    tag = new_tag()
    task = asyncio.create_task(python(workplace, DAEMON + STAY, tag).run())
    await until(lambda: len(alive(tag)) == 2)
    assert workplace.processes.shepherd_pid
    os.kill(workplace.processes.shepherd_pid, signal.SIGTERM)
    outcome = await asyncio.wait_for(task, 5)
    assert outcome.signal == signal.SIGKILL
    assert alive(tag) == []


async def test_a_stopped_shepherd_cannot_save_a_payload_from_its_kill(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.job_agent.payload.process_control.INSIST_SECONDS", 0.3)
    monkeypatch.setattr("services.job_agent.payload.process_control.ANSWER_SECONDS", 0.3)
    tag = new_tag()
    payload = python(workplace, DAEMON + STAY, tag)
    task = asyncio.create_task(payload.run())
    await until(lambda: len(alive(tag)) == 2 and payload.pid)
    assert workplace.processes.shepherd_pid
    os.kill(workplace.processes.shepherd_pid, signal.SIGSTOP)
    payload.kill(Reason(Code.LEASE_EXPIRED), grace=0)
    outcome = await asyncio.wait_for(task, 5)
    assert outcome.reason.code is Code.LEASE_EXPIRED
    assert alive(tag) == []


async def test_a_payload_that_dies_slowly_ends_no_other(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every death is slow to who is so impatient; the shepherd, which answers, is there all the same."""
    monkeypatch.setattr("services.job_agent.payload.process_control.INSIST_SECONDS", 0.0)
    first, tag, other_tag = workplace.processes.shepherd_pid, new_tag(), new_tag()
    many = "import os, time\nfor _ in range(7): os.fork()\n" + STAY
    payloads = [python(workplace, many, tag), python(workplace, "import time\n" + STAY, other_tag)]
    tasks = [asyncio.create_task(each.run()) for each in payloads]
    await until(lambda: len(alive(tag)) == 128 and alive(other_tag))
    payloads[0].kill(Reason(Code.PROCESS_LIMIT), grace=0)
    assert (await tasks[0]).reason.code is Code.PROCESS_LIMIT
    assert alive(tag) == []
    assert len(alive(other_tag)) == 1
    assert workplace.processes.shepherd_pid == first
    payloads[1].kill(Reason(Code.KILLED_BY_USER), grace=0)
    assert (await tasks[1]).reason.code is Code.KILLED_BY_USER


async def test_no_zombie_and_no_descriptor_stays(tmp_path: Path) -> None:
    async with Processes() as processes:
        pid = processes.shepherd_pid
        assert pid

        async def one(n: int) -> None:
            order = SpawnOrder(argv=("sh", "-c", "echo 1; sleep 0.01 &"), cwd=str(tmp_path), env={"PATH": os.environ["PATH"]},
                          stdout=f"{tmp_path}/{n}.out", stderr=f"{tmp_path}/{n}.err")  # fmt: skip
            await (await processes.spawn(order)).ended

        await one(0)
        before = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        await asyncio.gather(*(one(n) for n in range(50)))
        assert len(list(Path(f"/proc/{pid}/fd").iterdir())) == before
        assert Path(f"/proc/{pid}/task/{pid}/children").read_text().split() == [str(guard_of(pid))]


async def test_marks_are_of_one_payload_each(workplace: Workplace) -> None:
    if workplace.isolation.mode != "none":
        pytest.skip("in a container a payload is known by its PID namespace")
    payloads = [python(workplace, "import time; time.sleep(100)") for _ in range(3)]
    tasks = [asyncio.create_task(payload.run()) for payload in payloads]
    await until(lambda: all(payload.pid for payload in payloads))
    for payload in payloads:
        assert payload._process
        assert shepherd.marked({payload._process.mark}) == [(payload.pid, payload._process.mark)]
        payload.kill(Reason(Code.KILLED_BY_USER), grace=0)
    await asyncio.gather(*tasks)
