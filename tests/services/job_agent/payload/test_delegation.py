"""The cgroups that a batch system delegated to a pilot: where they are, when they are used, and that nothing of them is left."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from services.job_agent.payload import cgroup
from services.job_agent.payload.delegation import AGENT, Delegation, NotDelegatedError, delegated_cgroup
from tests.services.job_agent.payload.processes import WITH_CGROUPS
from tests.waiting import eventually
from wms.ids import AttemptId, Epoch, JobId

ATTEMPT = AttemptId(JobId(7), Epoch(2))


def proc(directory: Path, own: str, root: str = "/", kind: str = "cgroup2") -> Path:
    """Write what the kernel tells of a process in the cgroup `own`; the cgroups from `root` on are mounted in `directory`."""
    files = directory / "self"
    files.mkdir()
    (files / "cgroup").write_text(f"4:memory:/elsewhere\n{own}\n")
    mounts = (
        f"28 1 0:5 / /sys rw shared:7 - sysfs sys rw\n36 28 0:32 {root} {directory}/cg rw - {kind} none rw\n"
    )
    (files / "mountinfo").write_text(mounts)
    return directory


@pytest.mark.parametrize(
    ("own", "root", "below"),
    [
        ("0::/site/pilot", "/", "site/pilot"),
        (f"0::/site/pilot/{AGENT}", "/", "site/pilot"),
        ("0::/docker/a/b", "/docker/a", "b"),
    ],
)
def test_a_pilots_cgroup_is_found_where_it_is_mounted(
    tmp_path: Path, own: str, root: str, below: str
) -> None:
    assert delegated_cgroup(proc(tmp_path, own, root)) == tmp_path / "cg" / below


@pytest.mark.parametrize(
    ("own", "root", "kind", "why"),
    [
        ("0::/", "/", "cgroup2", "no cgroup of its own"),
        ("0::/a", "/", "cgroup", "version 2 are not mounted"),
        ("0::/../a", "/", "cgroup2", "not visible"),
        ("0::/ab", "/a", "cgroup2", "not visible"),
    ],
)
def test_where_there_is_none_it_is_said_why(tmp_path: Path, own: str, root: str, kind: str, why: str) -> None:
    with pytest.raises(NotDelegatedError, match=why):
        delegated_cgroup(proc(tmp_path, own, root, kind))


async def test_before_it_has_looked_payloads_have_none() -> None:
    assert Delegation().path(ATTEMPT) == ""


async def test_where_none_are_wanted_nothing_is_looked_at() -> None:
    async with Delegation(wanted=False) as cgroups:
        assert (cgroups.fault, cgroups.path(ATTEMPT)) == ("as asked for", "")


@WITH_CGROUPS
async def test_the_agent_moves_aside_and_back() -> None:
    base = delegated_cgroup()
    before = (base / "cgroup.procs").read_text()
    async with Delegation() as cgroups:
        assert cgroups.path(ATTEMPT) == str(base / "wms-7.2")
        assert (base / "cgroup.procs").read_text() == ""
        assert str(os.getpid()) in (base / AGENT / "cgroup.procs").read_text().split()
        assert delegated_cgroup() == base
        cgroup.make(cgroups.path(ATTEMPT), {"memory.max": "1000000"})
    assert (base / "cgroup.procs").read_text() == before
    assert (base / "cgroup.subtree_control").read_text() == ""
    assert not [each for each in base.iterdir() if each.is_dir()]


@WITH_CGROUPS
async def test_what_an_agent_left_that_was_killed_is_removed_by_the_next() -> None:
    base = delegated_cgroup()
    async with Delegation() as cgroups:
        cgroup.make(cgroups.path(ATTEMPT), {})
        pid = cgroup.fork_into(cgroups.path(ATTEMPT))
        if pid == 0:
            os.execv("/bin/sleep", ["sleep", "1000"])
        # As if it had been killed: nothing is removed, and the lock is let go.
        fcntl.flock(cgroups._lock, fcntl.LOCK_UN)
        os.close(cgroups._lock)
        cgroups._lock = -1
        async with Delegation() as later:
            assert later.fault == ""
            assert [each.name for each in base.iterdir() if each.is_dir()] == [AGENT]
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@WITH_CGROUPS
async def test_a_second_agent_leaves_those_of_the_first_alone() -> None:
    async with Delegation() as first:
        cgroup.make(first.path(ATTEMPT), {})
        async with Delegation() as second:
            assert "another agent uses" in second.fault
        assert Path(first.path(ATTEMPT)).exists()


@WITH_CGROUPS
async def test_beside_other_processes_nothing_is_changed() -> None:
    base = delegated_cgroup()
    with subprocess.Popen(["sleep", "1000"]) as other:
        async with Delegation() as cgroups:
            assert f"has other processes, such as {other.pid}" in cgroups.fault
            assert str(os.getpid()) in (base / "cgroup.procs").read_text().split()
        other.kill()
    assert not [each for each in base.iterdir() if each.is_dir()]


@WITH_CGROUPS
async def test_podmans_pause_process_is_moved_with_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    told = tmp_path / "libpod/tmp/pause.pid"
    told.parent.mkdir(parents=True)
    with subprocess.Popen(["sleep", "1000"]) as pause:
        told.write_text(f"{pause.pid}\n")
        async with Delegation() as cgroups:
            assert cgroups.fault == ""
            assert str(pause.pid) in (delegated_cgroup() / AGENT / "cgroup.procs").read_text().split()
        pause.kill()


AGENT_PROGRAM = """
import asyncio, sys
from pathlib import Path
from services.job_agent.payload.run import Payload
from services.job_agent.payload.workplace import Workplace
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

async def main(root):
    store = open_store(f"file://{root}/store")
    async with Workplace(root=root / "run", store=store, site="S", pilot_id="p") as workplace:
        payload = Payload(workplace, 1, 1, JobDescription(executable="sleep", arguments=("1000",)))
        async def tell(pid):
            print(payload._process.cgroup, flush=True)
        await payload.run(tell)

asyncio.run(main(Path(sys.argv[1])))
"""


@WITH_CGROUPS
async def test_the_shepherd_of_a_killed_agent_removes_the_cgroups_of_its_payloads(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", AGENT_PROGRAM, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout
        path = Path(agent.stdout.readline().strip())
        assert path.name == "wms-1.1"
        assert path.exists()
        agent.kill()
    await eventually(lambda: not path.exists())
    async with Delegation() as later:
        assert later.fault == "", (
            "the agent's own cgroup, with the script that started it, is the next agent's"
        )
    assert not [each for each in path.parent.iterdir() if each.is_dir()]
