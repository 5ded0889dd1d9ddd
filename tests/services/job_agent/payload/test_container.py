"""Payloads that mean harm, in containers: what they reach for is not there, and what they fill is theirs."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.job_agent.payload import shepherd
from services.job_agent.payload.container import COUNTS_TASKS, TASKS_LEAST
from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.outcome import PayloadOutcome
from services.job_agent.payload.run import Payload
from services.job_agent.payload.workplace import NAMESPACES, Workplace
from tests.services.job_agent.payload.processes import CAN_ISOLATE, a_line, alive, new_tag, until
from wms.errors import Unavailable
from wms.ids import AttemptId, Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store, upload

pytestmark = pytest.mark.skipif(not CAN_ISOLATE, reason="no namespaces can be made here")

MIB = 1024 * 1024
_ids = itertools.count(1)
New = Callable[..., Payload]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory of a system, with secrets in it that anyone may read."""
    data = tmp_path_factory.mktemp("data")
    for name in (
        "keys/issuer.pem",
        "client.toml",
        "pilots/p/config.toml",
        "pilots/other/jobs/7.1/work/result",
    ):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("secret")
    return data


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def workplace(data: Path) -> AsyncIterator[Workplace]:
    store = open_store(f"file://{data}/sandboxes")
    async with Workplace(
        root=data / "pilots" / "p" / "jobs",
        store=store,
        site=SiteName("S"),
        pilot_id=PilotId("p"),
        isolation=PayloadIsolation(mode="required", hidden=(str(data),)),
    ) as entered:
        assert entered.isolation_words == NAMESPACES
        yield entered


@pytest.fixture
def new(workplace: Workplace) -> New:
    def make(*argv: str, limits: PayloadLimits | None = None, **description: object) -> Payload:
        asked = JobDescription(executable=argv[0], arguments=argv[1:], **description)  # type: ignore[arg-type]
        return Payload(workplace, JobId(next(_ids)), Epoch(1), asked, limits)

    return make


async def shell(new: New, script: str, limits: PayloadLimits | None = None) -> PayloadOutcome:
    return await new("sh", "-c", script, limits=limits).run()


async def python(new: New, code: str) -> PayloadOutcome:
    return await new(sys.executable, "-c", code).run()


@pytest.mark.parametrize(
    "name",
    [
        "keys/issuer.pem",
        "client.toml",
        "sandboxes",
        "pilots/p/config.toml",
        "pilots/other/jobs/7.1/work/result",
    ],
)
async def test_secrets_and_stores_are_not_there(new: New, data: Path, name: str) -> None:
    outcome = await shell(new, f"cat {data}/{name}; ls {data}/{name}")
    assert outcome.reason.code is Code.EXIT_CODE
    assert "secret" not in outcome.stdout_tail
    assert outcome.stderr_tail.count("No such file or directory") == 2


async def test_another_jobs_directory_is_not_there_while_it_runs(new: New, workplace: Workplace) -> None:
    other = new("sh", "-c", "echo mine > result; echo ready; sleep 1000")
    running = asyncio.create_task(other.run())
    await a_line(other)
    outcome = await shell(new, f"cat {other._place.work}/result; ls {workplace.root}; ls ..")
    assert "mine" not in outcome.stdout_tail
    own, beside = outcome.stdout_tail.split(maxsplit=1)
    assert own != other._place.directory.name
    assert beside.split() == ["tmp", "work"], "what is printed is kept out of its reach"
    other.kill(Reason(Code.KILLED_BY_USER), grace=0)
    await running


async def test_the_agent_and_the_nodes_processes_are_not_there(new: New) -> None:
    agent = os.getpid()
    outcome = await shell(
        new, f"cat /proc/{agent}/environ; kill -9 {agent}; cat /proc/1/environ; ls /proc | grep -c '^[0-9]'"
    )
    assert "/proc/1/environ: No such file" in outcome.stderr_tail, "its own init's"
    assert outcome.stderr_tail.count("No such") >= 2
    assert int(outcome.stdout_tail) <= 5


async def test_the_pilots_python_is_there_though_it_lies_below_tmp(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as elsewhere:
        venv = Path(elsewhere, "clone", ".venv")
        program = venv / "bin" / "hello"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho hello; ls -a /tmp; : > /tmp/mine; : > $0")
        program.chmod(0o755)
        Path(elsewhere, "secret").touch()
        Path(elsewhere).chmod(0o755)
        monkeypatch.setattr(sys, "prefix", str(venv))
        async with Workplace(
            root=data / "pilots" / "q" / "jobs",
            store=open_store(f"file://{data}/sandboxes"),
            site=SiteName("S"),
            pilot_id=PilotId("q"),
            isolation=PayloadIsolation(mode="required", hidden=(str(data), "/tmp")),
        ) as entered:
            asked = JobDescription(executable=str(program), arguments=())
            outcome = await Payload(entered, JobId(next(_ids)), Epoch(1), asked, None).run()
    words = outcome.stdout_tail.split()
    assert words[0] == "hello", outcome.reason
    assert Path(elsewhere).name in words
    assert outcome.stderr_tail.count("Read-only file system") == 1, "it can be written beside, not to"


@pytest_asyncio.fixture(loop_scope="session")
async def beside_tmp() -> AsyncIterator[tuple[Path, Workplace]]:
    """A data directory that does not lie below /tmp, and a workplace in it; `later` is hidden and not there yet."""
    with tempfile.TemporaryDirectory(dir=Path.home() if os.geteuid() else "/var/lib") as name:
        data = Path(name)
        data.chmod(0o755)
        (data / "keys").mkdir()
        (data / "keys" / "issuer.pem").write_text("secret")
        outside = tempfile.TemporaryDirectory(dir=data.parent)
        Path(outside.name).chmod(0o755)
        async with Workplace(
            root=data / "pilots" / "p" / "jobs",
            store=open_store(f"file://{data}/sandboxes"),
            site=SiteName("S"),
            pilot_id=PilotId("p"),
            isolation=PayloadIsolation(mode="required", hidden=(str(data), "/tmp", f"{outside.name}/later")),
        ) as entered:
            yield Path(outside.name), entered
        outside.cleanup()


async def test_beside_tmp_it_has_its_own_directories_and_no_others(
    beside_tmp: tuple[Path, Workplace],
) -> None:
    _, workplace = beside_tmp
    data = workplace.root.parents[2]
    script = f"""
ls {data} {data}/pilots/p/jobs; cat {data}/keys/issuer.pem; pwd
echo 1 > mine; echo 2 > /tmp/mine; ls $TMPDIR /var/tmp | grep -c mine; cat mine /tmp/mine
touch {data}/x {data}/pilots/p/jobs/x ../x
"""
    containers = set()
    # Where the pilot's own Python lies below /tmp, that of its payloads is in memory.
    is_in_memory = Path(sys.prefix).is_relative_to("/tmp")
    shown = "0" if is_in_memory else "2"
    for _ in range(3):
        asked = JobDescription(executable="sh", arguments=("-c", script))
        payload = Payload(workplace, JobId(next(_ids)), Epoch(1), asked, None)
        outcome = await payload.run()
        directory = payload._place.directory
        assert outcome.stdout_tail.split() == [
            f"{data}:", "pilots", f"{data}/pilots/p/jobs:", directory.name, f"{directory}/work", shown, "1", "2",
        ], outcome.stderr_tail  # fmt: skip
        assert outcome.stderr_tail.count("Read-only file system") == 3
        assert (directory / "work" / "mine").read_text() == "1\n"
        assert (directory / "tmp" / "mine").exists() is not is_in_memory
        assert payload._process
        containers.add(payload._process.container)
        await payload.clean()
    assert len(containers) == 1


async def test_what_is_hidden_is_hidden_though_it_is_made_later_or_replaced(
    beside_tmp: tuple[Path, Workplace],
) -> None:
    outside, workplace = beside_tmp

    async def seen() -> tuple[str, str]:
        script = f"ls -a {outside}/later; cat {outside}/later/key; touch {outside}/later/x"
        asked = JobDescription(executable="sh", arguments=("-c", script))
        outcome = await Payload(workplace, JobId(next(_ids)), Epoch(1), asked, None).run()
        return outcome.stdout_tail, outcome.stderr_tail

    assert "No such file" in (await seen())[1]
    for _ in range(3):
        with contextlib.suppress(FileNotFoundError):
            (outside / "later").rename(outside / f"old{next(_ids)}")
        (outside / "later").mkdir()
        (outside / "later" / "key").write_text("secret")
        for _ in range(2):
            listed, errors = await seen()
            assert listed == ".\n..\n"
            assert "Read-only file system" in errors


async def test_a_large_order_is_taken(new: New) -> None:
    outcome = await new("sh", "-c", "echo ${#0} $#", "x" * 100_000, *("y" * 20_000 for _ in range(20))).run()
    assert outcome.stdout_tail == "100000 20\n"


PTRACE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pid in (1, os.getppid() or 1):
    print(libc.ptrace(16, pid, 0, 0), os.strerror(ctypes.get_errno()))
try:
    open("/proc/1/mem", "rb")
except OSError as error:
    print(error.strerror)
"""


async def test_its_init_can_be_neither_traced_nor_read_nor_killed(new: New) -> None:
    outcome = await python(new, PTRACE + "\nos.kill(1, 9) if os.getuid() else None\nprint('alive')")
    lines = outcome.stdout_tail.splitlines()
    assert lines[:3] == ["-1 Operation not permitted"] * 2 + ["No such file or directory"]
    assert lines[-1:] == ["alive"] or "PermissionError" in outcome.stderr_tail


PRIVILEGES = """
import os, re
status = open("/proc/self/status").read()
print(os.getuid() != 0, re.findall("(?:CapPrm|CapEff|CapInh|CapAmb|NoNewPrivs):\\\\s*(\\\\w+)", status), os.getgroups())
"""


async def test_it_has_no_privileges_and_can_gain_none(new: New) -> None:
    outcome = await python(new, PRIVILEGES)
    nothing = "0" * 16
    expected = f"True {[nothing] * 4 + ['1']}"
    assert outcome.stdout_tail.startswith(expected), outcome.stdout_tail + outcome.stderr_tail


@pytest.mark.parametrize("place", ["/", "/etc", "/usr/bin", "/var/lib", "/run", "/proc/sys/kernel"])
async def test_nothing_outside_its_directory_can_be_written(new: New, place: str) -> None:
    outcome = await shell(new, f"cd {place} && echo x > wms-was-here && cat wms-was-here")
    assert outcome.reason.code is Code.EXIT_CODE
    assert outcome.stdout_tail == ""


async def test_nothing_is_written_beside_its_directories(new: New) -> None:
    """Where the jobs lie below /tmp, what is above them is of the payload's own /tmp, which it may write to."""
    payload = new(
        "sh", "-c", "for up in .. ../..; do echo x > $up/wms-was-here; done; echo tried; sleep 1000"
    )
    running = asyncio.create_task(payload.run())
    await a_line(payload)
    directory = payload._place.directory
    assert directory.is_dir()
    assert not [
        each / "wms-was-here" for each in (directory, directory.parent) if (each / "wms-was-here").exists()
    ]
    payload.kill(Reason(Code.KILLED_BY_USER), grace=0)
    await running


async def test_its_tmp_and_shared_memory_are_its_own_and_go_with_it(new: New) -> None:
    script = "ls /tmp /var/tmp /dev/shm | grep mine; touch /tmp/mine /var/tmp/mine /dev/shm/mine && echo made"
    for _ in range(2):
        assert (await shell(new, script)).stdout_tail == "made\n"
    assert not Path("/dev/shm/mine").exists()
    assert not Path("/tmp/mine").exists()


async def test_shared_memory_is_bounded(new: New) -> None:
    outcome = await shell(new, "head -c 100000000 /dev/zero > /dev/shm/full; stat -c %s /dev/shm/full")
    assert "No space left on device" in outcome.stderr_tail
    assert int(outcome.stdout_tail) <= 64 * MIB


async def test_a_new_user_namespace_uncovers_nothing(new: New, data: Path) -> None:
    script = f"unshare -Urm sh -c 'umount {data}; umount -l /tmp; mount -o remount,rw /; cat {data}/client.toml; touch /x'"
    outcome = await shell(new, script)
    assert "secret" not in outcome.stdout_tail
    assert not Path("/x").exists()


FAMILY = """
import os, sys
for n in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
        os._exit(0)
os.system("echo ready")
"""


async def test_daemons_that_shed_every_mark_end_with_it(new: New) -> None:
    tag = new_tag()
    shed = "import resource; resource.setrlimit(resource.RLIMIT_RTTIME, (1, 1))\n"
    outcome = await new(sys.executable, "-c", shed + FAMILY, tag).run()
    assert outcome.reason.code is Code.DONE
    assert alive(tag) == []


async def test_memory_is_counted_though_it_sheds_every_mark(new: New) -> None:
    code = (
        "import resource, time; resource.setrlimit(resource.RLIMIT_RTTIME, (1, 1))\n"
        "held = b'x' * 300_000_000\ntime.sleep(1000)"
    )
    outcome = await new(sys.executable, "-c", code, limits=PayloadLimits(memory_bytes=150 * MIB)).run()
    assert outcome.reason.code is Code.MEMORY_LIMIT


@pytest.mark.skipif(not COUNTS_TASKS, reason="this kernel does not count the processes of a container")
async def test_the_kernel_refuses_what_no_agent_could_count_in_time(new: New) -> None:
    code = """
import threading
threading.stack_size(65_536)
ends = threading.Event()
started = 0
try:
    while started < 2_000:
        threading.Thread(target=ends.wait, daemon=True).start()
        started += 1
except RuntimeError as error:
    print(error)
print(started)
"""
    for _ in range(2):
        outcome = await new(sys.executable, "-c", code, limits=PayloadLimits(living=TASKS_LEAST // 4)).run()
        refusal, started = outcome.stdout_tail.splitlines()
        assert refusal == "can't start new thread"
        assert TASKS_LEAST // 2 < int(started) < TASKS_LEAST
    machines = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert machines > TASKS_LEAST, "the machine's own bound stays as it was"


async def test_a_container_is_used_again_and_nothing_stays_in_it(new: New, workplace: Workplace) -> None:
    seen: list[int] = []
    while len(set(seen)) == len(seen):  # the one that left its last payload longest ago
        payload = new("sh", "-c", "ipcmk -M 1000 >/dev/null; ipcs -m | grep -c 0x; sleep 1000 & echo done")
        outcome = await payload.run()
        assert outcome.stdout_tail == "1\ndone\n"
        assert payload._process
        seen.append(payload._process.container)
        await payload.clean()
        assert len(seen) < 10, "a new container for each payload"


MANY = """
import os, time
for _ in range(100):
    if os.fork() == 0:
        time.sleep(1000)
os.system("echo ready")
time.sleep(1000)
"""


async def test_a_container_that_dies_ends_its_payload_alone(new: New) -> None:
    tag = new_tag()
    payload, other = new(sys.executable, "-c", MANY, tag), new("sleep", new_tag())
    running = [asyncio.create_task(each.run()) for each in (payload, other)]
    await until(lambda: payload.pid and other.pid)
    await a_line(payload)
    assert len(alive(tag)) == 101
    assert payload._process
    os.kill(payload._process.container, signal.SIGKILL)
    await payload._process.ended
    assert alive(tag) == [], "its end is told once nothing of it is left"
    outcome = await running[0]
    assert (outcome.reason.code, outcome.signal) == (Code.SIGNAL, 9)
    assert other.pid
    other.kill(Reason(Code.KILLED_BY_USER), grace=0)
    assert (await running[1]).reason.code is Code.KILLED_BY_USER
    assert (await shell(new, "echo on")).stdout_tail == "on\n"


async def test_a_container_that_died_while_idle_is_replaced(new: New) -> None:
    """Of the shepherd, stopped meanwhile: it reads the order and the container's end in one turn."""
    payload = new("true")
    await payload.run()
    process = payload._process
    assert process
    processes = payload._at.processes
    shepherd_pid, link = processes.shepherd_pid, processes._link
    assert shepherd_pid
    assert link
    before = len(link._processes)  # the stagers of payloads that were not cleaned up
    os.kill(shepherd_pid, signal.SIGSTOP)
    try:
        running = [asyncio.create_task(new("echo", "on").run()) for _ in range(2)]
        await until(lambda: len(link._processes) == before + 2)
        os.kill(process.container, signal.SIGKILL)
        await until(lambda: not shepherd._lives(process.container))
    finally:
        os.kill(shepherd_pid, signal.SIGCONT)
    assert [outcome.stdout_tail for outcome in await asyncio.gather(*running)] == ["on\n"] * 2


async def test_its_inputs_are_its_own_to_change_and_its_outputs_are_kept(
    new: New, workplace: Workplace
) -> None:
    ref = await upload(
        workplace.store.of_attempt(AttemptId(JobId(1), Epoch(1))),
        {"in/data": b"1", "run.sh": b"#!/bin/sh\necho 2 >> in/data; id -u"},
    )
    payload = new("run.sh", input_sandbox=(ref,), output_sandbox=("in/*",))
    outcome = await payload.run()
    assert outcome.reason.code is Code.DONE, outcome.stderr_tail
    assert outcome.output
    assert outcome.stdout_tail != "0\n"
    assert (payload._place.work / "in/data").read_text() == "12\n"


async def test_where_it_must_be_and_cannot_no_payload_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faked: a machine that has no such user."""
    real = PayloadIsolation.settings
    monkeypatch.setattr(PayloadIsolation, "settings", lambda *args: {**(real(*args) or {}), "uid": 1 << 40})
    store = open_store(f"file://{tmp_path}/store")
    facts: dict[str, Any] = {"store": store, "site": SiteName("S"), "pilot_id": PilotId("p")}
    with pytest.raises(Unavailable, match="cannot be isolated here, and must be"):
        async with Workplace(
            root=tmp_path / "a", isolation=PayloadIsolation(mode="required", hidden=("/proc/1/x",)), **facts
        ):
            pass


@pytest.fixture
def servers() -> Iterator[dict[str, str]]:
    """Yield a script for each server of this node that says whether it is reached: on loopback, and by an abstract socket."""
    with socket.create_server(("127.0.0.1", 0)) as by_ip, socket.socket(socket.AF_UNIX) as by_name:
        name = f"wms-{new_tag()}"
        by_name.bind(f"\0{name}")
        by_name.listen()
        port = by_ip.getsockname()[1]
        yield {
            "loopback": f"socket.create_connection(('127.0.0.1', {port}), 5)",
            "abstract": f"socket.socket(socket.AF_UNIX).connect(chr(0) + {name!r})",
            "elsewhere": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9))",
        }


def reached(script: dict[str, str]) -> str:
    attempts = "".join(
        f"try:\n    {each}\n    print({name!r})\nexcept OSError:\n    pass\n" for name, each in script.items()
    )
    return f"import socket\n{attempts}"


async def test_without_a_network_nothing_of_the_node_is_reached(new: New, servers: dict[str, str]) -> None:
    found = {
        network: (
            await new(sys.executable, "-c", reached(servers), network=network).run()
        ).stdout_tail.split()
        for network in ("node", "none", "node")
    }
    assert {"loopback", "abstract"} <= set(found["node"]), "a container that was left gives the network again"
    assert found["none"] == []


async def test_without_a_network_it_has_a_loopback_device_of_its_own(new: New) -> None:
    code = """
import os, socket
server = socket.create_server(("127.0.0.1", 80 if os.geteuid() == 0 else 8080))
socket.create_connection(server.getsockname(), 5)
print(*[name for _, name in socket.if_nameindex()], sorted(n for n in os.environ if n in ("WMS_URL", "WMS_TOKEN")))
"""
    outcome = await new(sys.executable, "-c", code, network="none").run()
    devices, _, variables = outcome.stdout_tail.strip().rpartition(" ")
    assert outcome.reason.code is Code.DONE, outcome.stderr_tail
    assert "lo" in devices.split()
    assert variables == "[]"


async def test_without_a_network_it_is_who_it_is_elsewhere_and_keeps_its_limits(new: New) -> None:
    script = "id -u; id -g; ulimit -f; unshare -n true || grep -c CapEff.*0000000000000000 /proc/self/status"
    seen = [
        (
            await new("sh", "-c", script, network=network, limits=PayloadLimits(file_bytes=512_000)).run()
        ).stdout_tail
        for network in ("node", "none")
    ]
    assert seen[0] == seen[1]
    assert "1000" in seen[0].split()


async def test_what_is_not_isolated_never_runs_with_the_network_that_it_does_not_want(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    async with Workplace(root=tmp_path / "a", store=store, site=SiteName("S"), pilot_id=PilotId("p")) as bare:
        assert not bare.cuts_network
        asked = JobDescription(executable="touch", arguments=(str(tmp_path / "ran"),), network="none")
        outcome = await Payload(bare, JobId(next(_ids)), Epoch(1), asked).run()
    assert outcome.reason == Reason(
        Code.AGENT_ERROR, "its network cannot be taken away: payloads are not isolated here"
    )
    assert not (tmp_path / "ran").exists()


async def test_a_pilot_knows_that_it_can_take_the_network_away(workplace: Workplace) -> None:
    assert workplace.cuts_network, workplace.processes.network_fault
