"""A confined pilot sees what it needs, as root of nothing or as an ordinary user, and ends with those that sent it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from services.job_agent.confinement import SCRATCH, UNUSABLE
from tests.services.job_agent.fooled_pilot import ORDINARY, PROBE, can_confine
from tests.waiting import eventually
from wms.dispatch.confinement import FIRST_ID, UNCONFINED, Confinement, Mode, own_programs
from wms.dispatch.local import confined_argv

pytestmark = pytest.mark.skipif(bool(can_confine()), reason=can_confine())
HOLDS = """import fcntl, os, sys, time
file = open(sys.argv[1], "w")
file.write(str(os.getpid()))
file.flush()
fcntl.flock(file, fcntl.LOCK_EX)
print(flush=True)
time.sleep(1000)
"""
ACCOUNTS = [pytest.param((), id="own"), pytest.param(ORDINARY, id="ordinary")]


class Place:
    """A directory as a system has it: a secret in it, and beside that a pilot's own directory."""

    def __init__(self, root: Path) -> None:
        self.root = root / "data"
        self.own = self.root / "pilots" / "p1" / "own"
        self.own.mkdir(parents=True)
        self.root.chmod(0o700)
        self.secret = self.root / "secret"
        self.secret.write_text("s3cret")
        self.shared = self.root / "files"
        self.shared.mkdir()

    def confinement(self, mode: Mode = "required", **more: object) -> Confinement:
        shown = (*own_programs(), str(PROBE.parent))
        return Confinement(
            mode=mode,
            hidden=(str(self.root),),
            shown=shown,
            shared=(str(self.shared),),
            **more,  # type: ignore[arg-type]
        )

    def run(
        self, command: Sequence[str], *, prefix: Sequence[str] = (), **more: object
    ) -> "subprocess.Popen[str]":
        confinement = self.confinement(**more)  # type: ignore[arg-type]
        if not prefix and confinement.owner is not None:
            for each in (self.own, self.shared):
                os.chown(each, confinement.owner, confinement.owner)
        return subprocess.Popen(
            [*prefix, *confined_argv(confinement, self.own, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("prefix", ACCOUNTS)
def test_it_reaches_its_own_and_what_all_may_read(place: Place, prefix: Sequence[str]) -> None:
    victim = subprocess.Popen(["sleep", "1000"])
    try:
        told = {"root": str(place.root), "sockets": [], "pids": [victim.pid, os.getpid()]}
        code, out, err = ended(place.run([sys.executable, str(PROBE), json.dumps(told)], prefix=prefix))
        assert code == 0, err
        found = json.loads(out)
        assert found["files"] == []
        assert found["below"] == ["files", "pilots"]
        assert found["writable"] == []
        written = {each.parent for each in place.root.rglob("mine")}
        assert written == {place.shared, place.own, place.own / SCRATCH}
        assert found["reached"] == []
        assert found["pids"] <= 4
        assert found["taken_away"] == [], "no cover can be removed, in whatever namespaces"
        assert victim.poll() is None
        if not prefix and os.geteuid() == 0:
            assert (place.own / "mine").stat().st_uid == FIRST_ID
    finally:
        victim.kill()
        victim.wait()


@pytest.mark.parametrize("mode", ["required", "none"])
def test_it_ends_as_its_program_ends(place: Place, mode: str) -> None:
    assert ended(place.run(["/bin/sh", "-c", "exit 3"], mode=mode))[0] == 3
    assert ended(place.run(["/bin/sh", "-c", "kill -9 $$"], mode=mode))[0] == -signal.SIGKILL


@pytest.mark.parametrize("mode", ["required", "none"])
async def test_it_is_told_to_end_and_ends_with_whoever_sent_it(place: Place, mode: str) -> None:
    ready = place.own / "ready"
    waits = f"trap 'exit 7' TERM; touch {ready}; while :; do sleep 0.05; done"
    pilot = place.run(["/bin/sh", "-c", waits], mode=mode)
    await eventually(ready.exists)
    pilot.terminate()
    assert ended(pilot)[0] == 7
    ready.unlink()
    pilot = place.run(["/bin/sh", "-c", waits], mode=mode)
    await eventually(ready.exists)
    pilot.kill()
    # Whoever has its output open has not ended.
    assert ended(pilot)[0] == -signal.SIGKILL


async def test_it_ends_with_the_system(place: Place, tmp_path: Path) -> None:
    lock, ready = tmp_path / "lock", place.own / "ready"
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            HOLDS,
            str(lock),
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    waits = f"trap '' TERM; touch {ready}; while :; do sleep 0.05; done"
    pilot = place.run(["/bin/sh", "-c", waits], lifeline=str(lock))
    await eventually(ready.exists)
    holder.kill()
    assert ended(pilot)[0] == -signal.SIGKILL
    holder.communicate()
    assert ended(place.run(["/bin/sh", "-c", "sleep 1000"], lifeline=str(lock)))[0] == -signal.SIGKILL


def test_a_program_that_its_account_cannot_read_is_told(place: Place, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    shutil.copy("/bin/true", closed)
    closed.chmod(0o000)
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's pilots are the user's")
    code, _, err = ended(place.run([str(closed)]))
    assert code == UNUSABLE
    assert f"may not read {closed}" in err
    closed.chmod(0o700)
    code, _, err = ended(place.run([str(closed)], mode="auto"))
    assert code == 0, "without a confinement it is root's"
    assert err.startswith(UNCONFINED)
