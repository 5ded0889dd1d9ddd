"""What a program in its sandbox cannot do: read or write what it was not shown, reach the network, or outlast its bounds."""

import asyncio
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from deploy.testbed.packages import SANDBOX, missing
from tests.waiting import eventually
from wms.dispatch.bubblewrap import PROCESSES, Bubblewrap
from wms.errors import Unavailable

LIMIT = 16_384
LONG = 120.0
"""Seconds that a program has which is not to pass this bound, however busy the machine is."""


def skip_without_sandbox(tmp_path: Path) -> None:
    """Skip, loudly, where no sandbox can be made."""
    if lack := missing(SANDBOX):
        pytest.skip(
            f"SITES' MAPPING SCRIPTS NOT TESTED IN THEIR SANDBOX: this machine lacks {' '.join(lack)}"
        )
    if fault := Bubblewrap(program(tmp_path, "true", name="probe")).fault():
        pytest.skip(f"SITES' MAPPING SCRIPTS NOT TESTED IN THEIR SANDBOX: a program {fault}")


def program(place: Path, text: str, *, name: str = "program", shell: str = "/bin/sh") -> Path:
    """Write a program of a site's."""
    path = place / name
    path.write_text(f"#!{shell}\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _sandboxed(tmp_path: Path) -> None:
    skip_without_sandbox(tmp_path)


async def run(
    place: Path, text: str, *, seconds: float = LONG, reads: tuple[Path, ...] = (), given: str = "", shell: str = "/bin/sh"
) -> str:  # fmt: skip
    it = Bubblewrap(program(place, text, shell=shell), reads, seconds, LIMIT)
    return (await it.run(given)).decode()


def named(marker: str) -> list[psutil.Process]:
    """Return the processes with a word on their command lines."""
    return [each for each in psutil.process_iter(["cmdline"]) if marker in (each.info["cmdline"] or ())]


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[str]:
    """Yield a time to sleep that nobody else sleeps."""
    yield (text := f"86400.{os.getpid()}{abs(hash(tmp_path)) % 10**6:06}")
    for each in named(text):
        each.kill()


async def test_a_program_reads_what_it_is_given_and_what_it_prints_is_returned(tmp_path: Path) -> None:
    assert await run(tmp_path, 'read text; echo "it said $text"', given="x y\n") == "it said x y\n"


async def test_a_program_sees_its_file_the_system_and_what_it_is_shown_and_nothing_else(
    tmp_path: Path,
) -> None:
    shown, secret = tmp_path / "shown" / "table", tmp_path / "shown" / "secret"
    shown.parent.mkdir()
    shown.write_text("a table\n")
    secret.write_text("a secret\n")
    ours = [
        str(secret),
        "/etc/passwd",
        "/etc/shadow",
        "/proc/1/environ",
        "/proc/self/environ",
        "/run",
        "/var",
        "/root/.ssh",
        "/sys",
    ]
    printed = await run(
        tmp_path, f"cat {shown}; ls {shown.parent} / ; for each in {' '.join(ours)}; do test -e $each && echo seen $each; done; true",
        reads=(shown,),
    )  # fmt: skip
    assert "a table" in printed
    assert "secret" not in printed
    assert "seen" not in printed
    top = set(printed.split()) - {"a", "table", f"{shown.parent}:", "/:"}
    assert top <= {
        "bin",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "program",
        "sbin",
        "usr",
        shown.parts[1],
    }


async def test_a_program_gets_no_environment_and_no_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WMS_TOKEN", "a secret")
    printed = await run(
        tmp_path, "env; id -u; chroot / true || echo no right; kill -0 1 && echo may kill; true"
    )
    names = {line.partition("=")[0] for line in printed.splitlines() if "=" in line}
    assert names <= {"PATH", "LC_ALL", "PWD", "SHLVL", "_", "OLDPWD"}
    assert "a secret" not in printed
    assert "no right" in printed
    assert "\n0\n" not in printed


async def test_a_program_can_write_nowhere(tmp_path: Path) -> None:
    places = ["/x", "/tmp/x", "/dev/x", "/dev/shm/x", "/etc/x", "/usr/x", "/program", str(tmp_path / "x")]
    printed = await run(
        tmp_path,
        f"for each in {' '.join(places)}; do echo y 2>/dev/null > $each && echo wrote $each; done; true",
    )
    assert printed == ""
    assert not (tmp_path / "x").exists()
    assert "wrote" in (tmp_path / "program").read_text(), "its own file is as it was"


async def test_a_program_reaches_no_network(tmp_path: Path) -> None:
    """Neither a server of this machine nor one of Linux's abstract sockets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        printed = await run(
            tmp_path,
            f"(echo hello > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached; true",
            shell="/bin/bash",
        )
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert printed == ""


async def test_a_program_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path, marker: str) -> None:
    with pytest.raises(Unavailable, match=r"^has not ended within 1 s"):
        await run(tmp_path, f"sleep {marker} & sleep {marker}", seconds=1.0)
    await eventually(lambda: not named(marker))


async def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path, marker: str) -> None:
    printed = await run(tmp_path, f"sleep {marker} & setsid sleep {marker} & echo done")
    assert printed == "done\n"
    await eventually(lambda: not named(marker))


async def test_a_program_that_prints_too_much_is_killed(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=f"^printed over {LIMIT:,} bytes"):
        await run(tmp_path, "exec yes")


async def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"^failed with exit code 3: no such table"):
        await run(tmp_path, "echo no such table >&2; exit 3")
    with pytest.raises(Unavailable, match=r"^failed with exit code"):
        await run(tmp_path, "kill -9 $$")
    with pytest.raises(Unavailable, match=r"^failed with exit code"):
        await run(tmp_path, "echo", shell="/no/such/shell")


async def test_complaints_without_end_cost_no_memory(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="has not ended within"):
        await run(tmp_path, "exec yes >&2", seconds=1.0)


async def test_a_program_starts_few_processes(tmp_path: Path, marker: str) -> None:
    text = f"(for each in $(seq 200); do sleep {marker} & echo started; done) 2>/dev/null; exit 0"
    assert 0 < (await run(tmp_path, text)).count("started") < PROCESSES
    await eventually(lambda: not named(marker))


async def test_a_program_that_forks_without_end_ends(tmp_path: Path, marker: str) -> None:
    bomb = f"bomb() {{ sleep {marker} & bomb | bomb & bomb; }}; bomb"
    with pytest.raises(Unavailable):
        await run(tmp_path, bomb, seconds=2.0)
    await eventually(lambda: not named(marker))


async def test_a_program_gets_little_memory(tmp_path: Path) -> None:
    printed = await run(tmp_path, "head -c 600000000 /dev/zero | tail 2>/dev/null | wc -c")
    assert int(printed) == 0


async def test_a_program_ends_with_the_process_that_runs_it(tmp_path: Path, marker: str) -> None:
    path = program(tmp_path, f"exec sleep {marker}")
    code = (
        "import asyncio, pathlib, sys; from wms.dispatch.bubblewrap import Bubblewrap;"
        " asyncio.run(Bubblewrap(pathlib.Path(sys.argv[1]), (), 100.0).run(''))"
    )
    runner = subprocess.Popen([sys.executable, "-c", code, str(path)])
    try:
        await eventually(lambda: named(marker))
    finally:
        runner.kill()
        runner.wait()
    await eventually(lambda: not named(marker))


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Yield a directory that every user may look into."""
    place = Path(tempfile.mkdtemp(prefix="wms-sandbox-", dir="/tmp"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def test_who_is_not_root_has_the_same_sandbox(open_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a user namespace of its own, where root needs none."""
    forks = "(for each in $(seq 200); do sleep 600 & echo started; done) 2>/dev/null"
    path = program(open_place, f"id -u; {forks}; echo y 2>/dev/null > /x || echo read-only")
    sandbox = Bubblewrap(path, (), LONG, LIMIT)
    become: list[str] = []
    if os.geteuid() == 0:
        become = ["setpriv", "--reuid=61001", "--regid=61001", "--clear-groups", "--"]
        monkeypatch.setattr(os, "geteuid", lambda: 61_001)
    argv = sandbox._argv(["/program"])
    assert "--unshare-user" in argv
    done = subprocess.run([*become, *argv], capture_output=True, text=True, check=False)
    if "ermission" in done.stderr or "user namespace" in done.stderr:
        pytest.skip(f"USER NAMESPACES NOT TESTED: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] != "0"
    assert 0 < done.stdout.count("started") < PROCESSES
    assert done.stdout.split()[-1] == "read-only"


async def test_without_bubblewrap_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    path = program(tmp_path, f"touch {ran}")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "is never run without bubblewrap" in Bubblewrap(path).fault()
    with pytest.raises(Unavailable, match="is never run without bubblewrap"):
        await Bubblewrap(path).run("")
    assert not ran.exists()


def test_what_cannot_be_run_is_told_beforehand(tmp_path: Path) -> None:
    path = program(tmp_path, "true")
    assert Bubblewrap(path).fault() == ""
    assert "is to read what is missing" in Bubblewrap(path, (tmp_path / "none",)).fault()
    path.chmod(0o644)
    assert not path.stat().st_mode & stat.S_IXUSR
    assert "is no program" in Bubblewrap(path).fault()
    assert "is no program" in Bubblewrap(tmp_path).fault()


async def test_programs_run_side_by_side(tmp_path: Path) -> None:
    path = program(tmp_path, "cat")
    said = await asyncio.gather(*(Bubblewrap(path, (), LONG).run(str(number)) for number in range(4)))
    assert said == [b"0", b"1", b"2", b"3"]
