"""The script of a job that is sent directly, run by real shells: under a fresh lease alone, and no longer than that."""

import asyncio
import os
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from tests.waiting import eventually
from wms.dispatch import direct_script as scripts
from wms.dispatch.direct import NEVER_BEGAN, STDOUT, WORK, DirectEnd, DirectPayload, end_in
from wms.dispatch.direct_script import direct_script
from wms.dispatch.pilot_directories import Places
from wms.dispatch.shared_directories import SharedDirectories
from wms.ids import PilotId

NAME = PilotId("p-1")


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that nobody has waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


SHELLS = [
    pytest.param(each, marks=pytest.mark.skipif(not shutil.which(each), reason=f"no {each} here"))
    for each in ("dash", "bash", "busybox")
]


class Jobs(SharedDirectories):
    """The directories of jobs below one."""

    def __init__(self, directory: Path) -> None:
        self._places = Places(directory)
        self.place = self._places.of(NAME)
        (self.place / WORK).mkdir(parents=True)

    @asynccontextmanager
    async def running(
        self, shell: str, *argv: str, stdin: str = ""
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        payload = DirectPayload(
            argv=argv, environment={"PATH": os.environ["PATH"]}, inputs=self.place, stdin=stdin
        )
        script = self.place / "job.sh"
        script.write_text(direct_script(NAME, payload, place=shlex.quote(str(self.place))))
        command = [shell, "sh"] if shell == "busybox" else [shell]
        process = await asyncio.create_subprocess_exec(*command, str(script))
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def ended(self, process: asyncio.subprocess.Process, seconds: float = 30.0) -> DirectEnd:
        """Renew the lease until the job has ended, and return how."""
        number = 0
        while process.returncode is None:
            number += 1
            await self.extend(NAME, number, seconds)
            await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=0.2)
        return end_in(self.place)


@pytest.fixture
def jobs(tmp_dir: Path) -> Jobs:
    return Jobs(tmp_dir)


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_job_runs_under_its_lease(jobs: Jobs, shell: str) -> None:
    (jobs.place / WORK / "data in").write_text("given")
    program = 'echo "$1 $(cat)"; cd "$HOME" && ls; exit 4'
    async with jobs.running(shell, "sh", "-c", program, "-", "it's", stdin="data in") as process:
        end = await jobs.ended(process)
    assert (end.exit_code, end.ended_for, end.has_begun) == (4, "", True)
    assert (jobs.place / STDOUT).read_text() == "it's given\ndata in\n"


async def test_a_program_of_its_own_is_started_from_its_directory(jobs: Jobs) -> None:
    (jobs.place / WORK / "run me").write_text("#!/bin/sh\necho mine")
    async with jobs.running("sh", "run me") as process:
        assert (await jobs.ended(process)).exit_code == 0
    assert (jobs.place / STDOUT).read_text() == "mine\n"


async def test_an_old_lease_begins_no_job(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number is one of before: whoever wrote it may be dead, and another may have the job."""
    monkeypatch.setattr(scripts, "PATIENCE_SECONDS", 2)
    await jobs.extend(NAME, 1, 600.0)
    async with jobs.running("sh", "true") as process:
        assert await process.wait() == NEVER_BEGAN
    assert not end_in(jobs.place).has_begun


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_job_whose_lease_is_not_renewed_ends_with_all_its_processes(jobs: Jobs, shell: str) -> None:
    pid = jobs.place / WORK / "pid"
    program = "trap '' TERM; sleep 600 & echo $! > pid; wait"
    async with jobs.running(shell, "sh", "-c", program) as process:
        await eventually(lambda: started(jobs, pid))
        await jobs.extend(NAME, 9, 1.0)
        await process.wait()
    assert end_in(jobs.place).ended_for == "lease"
    assert not is_alive(int(pid.read_text()))


async def started(jobs: Jobs, pid: Path) -> bool:
    """Renew until the job has begun."""
    started.number = getattr(started, "number", 100) + 1  # type: ignore[attr-defined]
    await jobs.extend(NAME, started.number, 30.0)  # type: ignore[attr-defined]
    return pid.exists() and pid.read_text().strip().isdecimal()


async def test_a_job_that_is_told_to_end_does(jobs: Jobs) -> None:
    pid = jobs.place / WORK / "pid"
    async with jobs.running("sh", "sh", "-c", "echo $$ > pid; exec sleep 600") as process:
        await eventually(lambda: started(jobs, pid))
        process.terminate()
        await process.wait()
    assert end_in(jobs.place).ended_for == "told"
    assert not is_alive(int(pid.read_text()))
