"""Ways out of an isolated payload that the kernel itself offers: each is refused, and ordinary programs run none the less."""

import asyncio
import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.job_agent.payload.container import IPC_LIMITS
from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.run import Payload
from services.job_agent.payload.seccomp import ARCHITECTURES, NEW_USER, OWN_FILES, REFUSED, REFUSED_WITH
from services.job_agent.payload.workplace import Workplace
from tests.services.job_agent.payload.processes import CAN_ISOLATE, a_line, new_tag
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

pytestmark = pytest.mark.skipif(not CAN_ISOLATE, reason="no namespaces can be made here")

_ids = count(1)
QUEUES = int(IPC_LIMITS["/proc/sys/kernel/msgmni"])
NEW_MOUNTS = 0x20000
NAMESPACES = (NEW_USER, NEW_MOUNTS, 0x40000000, 0x08000000, 0x20000000, 0x02000000)
CALLS = """
import ctypes, errno, json, os, platform
libc = ctypes.CDLL(None, use_errno=True)
kind = {kinds}.index(platform.machine())

def answer(number, *arguments):
    ctypes.set_errno(0)
    done = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return 0 if done >= 0 else ctypes.get_errno()

"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def workplace() -> AsyncIterator[Workplace]:
    # Below /tmp that of payloads would be in memory.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        Path(root).chmod(0o755)
        async with Workplace(
            root=Path(root, "run"),
            store=open_store(f"file://{root}/store"),
            site=SiteName("S"),
            pilot_id=PilotId("p"),
            isolation=PayloadIsolation(mode="required"),
        ) as entered:
            yield entered


async def told(workplace: Workplace, code: str, *arguments: str) -> Any:
    """Run Python in a payload and return what it printed, as JSON."""
    asked = JobDescription(executable=sys.executable, arguments=("-c", code, *arguments))
    outcome = await Payload(workplace, JobId(next(_ids)), Epoch(1), asked).run()
    assert outcome.reason.code is Code.DONE, outcome.stderr_tail
    return json.loads(outcome.stdout_tail)


async def test_calls_that_no_payload_needs_are_refused(workplace: Workplace) -> None:
    refused = {name: [numbers, error] for name, (numbers, error) in REFUSED.items()}
    code = CALLS.format(kinds=list(ARCHITECTURES)) + (
        f"print(json.dumps({{name: answer(numbers[kind], 0, 0, 0, 0) for name, (numbers, _) in {refused!r}.items()}}))"
    )
    assert await told(workplace, code) == {name: error for name, (_, error) in REFUSED.items()}


async def test_no_thread_has_files_that_are_not_looked_at(workplace: Workplace) -> None:
    unshare = REFUSED_WITH["unshare"][0]
    code = (
        CALLS.format(kinds=list(ARCHITECTURES)) + f"print(json.dumps(answer({unshare!r}[kind], {OWN_FILES})))"
    )
    assert await told(workplace, code) == errno.EPERM


async def test_no_namespace_and_no_mount_is_made(workplace: Workplace) -> None:
    clone, unshare = (REFUSED_WITH[name][0] for name in ("clone", "unshare"))
    code = (
        CALLS.format(kinds=list(ARCHITECTURES))
        + f"""
def mounted():
    libc.mount(b"none", os.getcwd().encode(), b"tmpfs", 0, None)
    return ctypes.get_errno()

print(json.dumps([
    [answer({unshare!r}[kind], flag) for flag in {NAMESPACES!r}],
    [answer({clone!r}[kind], flag | 17, 0, 0, 0, 0) for flag in {NAMESPACES!r}],
    mounted(),
    [line.split()[1] for line in open("/proc/self/status") if line[:6] in ("CapInh", "CapPrm", "CapEff", "CapAmb")],
    [line.split()[1] for line in open("/proc/self/status") if line.startswith("NoNewPrivs")],
]))"""
    )
    assert await told(workplace, code) == [
        [errno.EPERM] * len(NAMESPACES),
        [errno.EPERM] * len(NAMESPACES),
        errno.EPERM,
        ["0" * 16] * 4,
        ["1"],
    ]


async def test_ordinary_programs_do_without_them(workplace: Workplace) -> None:
    code = """
import json, mmap, multiprocessing, os, subprocess, threading
ran = []
thread = threading.Thread(target=ran.append, args=("thread",))
thread.start()
thread.join()
ran.append(subprocess.run(["echo", "program"], capture_output=True, text=True).stdout.strip())
with multiprocessing.get_context("fork").Pool(2) as pool:
    ran.append(pool.map(str.upper, ["pool"])[0])
with open("file", "w+b") as file:
    os.posix_fallocate(file.fileno(), 0, 1 << 20)
    ran.append(os.fstat(file.fileno()).st_blocks * 512 >= 1 << 20)
with open("/dev/shm/shared", "w+b") as file:
    os.posix_fallocate(file.fileno(), 0, 1 << 20)
    ran.append(len(mmap.mmap(file.fileno(), 0)))
ran.append(os.write(os.memfd_create("memory"), b"12345"))
print(json.dumps(ran))
"""
    assert await told(workplace, code) == ["thread", "program", "POOL", True, 1 << 20, 5]


async def test_it_inherits_no_descriptor_and_no_terminal(workplace: Workplace) -> None:
    code = """
import json, os
held = {name: os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")}
def opened(path):
    try:
        return os.open(path, os.O_RDWR | os.O_NOCTTY) >= 0
    except OSError:
        return False
terminals = ["/dev/tty", "/dev/console", *(f"/dev/tty{number}" for number in range(8)), *(f"/dev/pts/{number}" for number in range(64))]
print(json.dumps([sorted(held), held["0"], [path for path in terminals if opened(path)]]))
"""
    assert await told(workplace, code) == [["0", "1", "2"], "/dev/null", []]


async def test_devices_are_harmless_and_none_is_made(workplace: Workplace) -> None:
    code = """
import json, os, stat
found = []
for directory, _, names in os.walk("/dev"):
    for name in names:
        path = os.path.join(directory, name)
        mode = os.lstat(path).st_mode
        if (stat.S_ISBLK(mode) or stat.S_ISCHR(mode)) and name not in ("watchdog", "watchdog0"):
            try:
                os.close(os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
                found.append(path)
            except OSError:
                pass
for kind in (stat.S_IFBLK, stat.S_IFCHR):
    try:
        os.mknod("device", kind | 0o666, os.makedev(1, 1))
        found.append("made")
    except OSError:
        pass
print(json.dumps(found))
"""
    harmless = {
        f"/dev/{name}"
        for name in ("null", "zero", "full", "random", "urandom", "ptmx", "tty", "fuse", "pts/ptmx")
    }
    assert set(await told(workplace, code)) <= harmless


async def test_core_files_go_nowhere(workplace: Workplace) -> None:
    code = """
import json, os, resource
def written(path):
    try:
        return os.write(os.open(path, os.O_WRONLY), b"|/bin/true") > 0
    except OSError:
        return False
print(json.dumps([resource.getrlimit(resource.RLIMIT_CORE), written("/proc/sys/kernel/core_pattern"), written("/proc/sys/fs/suid_dumpable")]))
"""
    assert await told(workplace, code) == [[0, 0], False, False]


async def test_what_a_payload_does_to_its_container_is_not_left_to_the_next(workplace: Workplace) -> None:
    """As the pilot's user it may lower the limits of the namespace's first process, and write to that one's files in /proc."""
    code = """
import json, os, resource
limits = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")} - {resource.RLIMIT_RTTIME})
for limit in limits:
    try:
        resource.prlimit(1, limit, (20, 20))
    except PermissionError:
        pass
print(json.dumps([list(map(resource.getrlimit, limits)), open("/proc/self/oom_score_adj").read(), os.path.exists("/proc/1")]))
"""
    first = await told(workplace, code)
    # Whichever container comes next: there are few, and each is taken in turn.
    assert [await told(workplace, code) for _ in range(3)] == [first] * 3
    assert not first[-1]


async def test_semaphores_and_queues_take_little_of_the_kernels_memory(workplace: Workplace) -> None:
    code = f"""
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
def made(count, make, *arguments):
    for number in range(count):
        if make(0, *arguments) < 0:
            return [number, ctypes.get_errno()]
    return [count, 0]
NEW = 0o1600
queues = made({QUEUES} + 1, libc.msgget, NEW)[0] == {QUEUES}
print(json.dumps([made(1, libc.semget, 256, NEW), made(1, libc.semget, 200, NEW), queues]))
"""
    too_large, usual, has_few_queues = await told(workplace, code)
    assert too_large == [0, errno.EINVAL]
    assert usual == [1, 0]
    # Others than root can set no limits of an IPC namespace.
    assert has_few_queues or os.geteuid() != 0


async def test_descriptors_under_way_keep_no_job_from_its_start(workplace: Workplace) -> None:
    """The kernel counts them for an account, which may be the pilot's too."""
    hold = """
import os, resource, socket
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
file, held = os.open("/dev/null", os.O_RDONLY), []
try:
    while len(held) < 1_000:
        held.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        socket.send_fds(held[-1][0], [b"x"], [file] * 250)
except OSError:
    print("refused", flush=True)
import time
time.sleep(1000)
"""
    asked = JobDescription(executable=sys.executable, arguments=("-c", hold))
    holder = Payload(workplace, JobId(next(_ids)), Epoch(1), asked)
    holding = asyncio.create_task(holder.run())
    try:
        await a_line(holder)
        assert await told(workplace, "print(1)") == 1
    finally:
        holding.cancel()
        await asyncio.wait([holding])


@pytest.mark.skipif(os.geteuid() != 0, reason="all tests here run as an ordinary user")
def test_payloads_of_the_pilots_own_user_are_no_other() -> None:
    """The three tests before, in a user namespace without privileges, where payloads run as the pilot's user."""
    entering = "setpriv --regid=12345 --clear-groups unshare --user --map-user=1000 --map-group=1000"
    tests = ["-k", "left_to_the_next or under_way or semaphores", __file__]
    ran = subprocess.run(
        [*entering.split(), sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *tests],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "3 passed" in ran.stdout, ran.stdout[-4000:] + ran.stderr


async def test_a_socket_gives_no_job_a_hold_on_another(workplace: Workplace) -> None:
    """Payloads with the node's network share its abstract sockets, and each can learn the process at the far end."""
    name = f"wms-{new_tag()}"
    listen = f"""
import socket
with socket.socket(socket.AF_UNIX) as server:
    server.bind("\\0{name}")
    server.listen()
    print("ready", flush=True)
    server.accept()[0].recv(1)
"""
    asked = JobDescription(executable=sys.executable, arguments=("-c", listen))
    listener = Payload(workplace, JobId(next(_ids)), Epoch(1), asked)
    listening = asyncio.create_task(listener.run())
    await a_line(listener)
    code = (
        CALLS.format(kinds=list(ARCHITECTURES))
        + f"""
import signal, socket
SO_PEERPIDFD, PIDFD_SEND_SIGNAL = 77, 424
peer = socket.socket(socket.AF_UNIX)
peer.connect("\\0{name}")
try:
    held = peer.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
except OSError:
    held = -1  # before Linux 6.5
print(json.dumps([
    answer({REFUSED["pidfd_getfd"][0]!r}[kind], held, 3, 0) != 0,
    answer(PIDFD_SEND_SIGNAL, held, signal.SIGKILL, 0, 0) != 0,
]))
peer.send(b"x")
"""
    )
    assert await told(workplace, code) == [True, True]
    assert (await listening).reason.code is Code.DONE
