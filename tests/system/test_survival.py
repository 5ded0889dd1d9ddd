"""The system dies whole, or loses its broker whole: no job is lost, and nothing is left running."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.chaos import executions
from tests.chaos.run import quick_system
from tests.contract.embedded.test_system import of_system
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription, select
from wms.embedded.system import down

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

UP = """
import asyncio, sys
from pathlib import Path
from tests.chaos.run import quick_system

async def main():
    async with quick_system(Path(sys.argv[1])) as system:
        print("up", flush=True)
        await system.until_told()

asyncio.run(main())
"""


def start(root: Path) -> "subprocess.Popen[str]":
    here = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", UP, str(root)], stdout=subprocess.PIPE, text=True, cwd=here
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def working_below(root: Path) -> list[psutil.Process]:
    """Return all processes that work in the system's directory: agents, shepherds, payloads and what these started."""

    def each() -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()).is_relative_to(root):
                    yield process
            except (psutil.Error, OSError):
                continue

    return list(each())


def slow_jobs(tmp_path: Path) -> tuple[JobDescription, Path]:
    """Return an array of jobs that tell into a file what ran; the file, too."""
    payload, log = tmp_path / "payload.sh", tmp_path / "executions"
    payload.write_text(executions.PAYLOAD, "ascii")
    log.touch()
    return (
        JobDescription(
            executable="/bin/sh",
            arguments=(str(payload), str(log)),
            cpu_time=60,
            max_attempts=20,
            array=120,
        ),
        log,
    )


async def until_ticks(log: Path, ticks: int) -> None:
    """Wait until so much has been run."""
    await eventually(lambda: log.read_text().count("tick") > ticks, within=60)


async def check_all(root: Path, url: str, log: Path, client: Client) -> None:
    counts = await client.wait(select(everything=True), timeout=120)
    assert counts == {"Done": 118, "Failed": 2}
    report = await audit(url)
    assert report.ok, report.text(brief=True)
    import asyncpg

    connection = await asyncpg.connect(url)
    attempts = await connection.fetch("select job_id, epoch, outcome, accepted_at from attempt")
    await connection.close()
    assert executions.faults(executions.read(log), attempts) == []
    assert root.exists()


async def test_killed_whole_it_leaves_nothing_running_and_then_finishes_every_job(tmp_path: Path) -> None:
    root = tmp_path / "a system"
    jobs, log = slow_jobs(tmp_path)
    first = await asyncio.to_thread(start, root)
    async with Client.connect(root, timeout=30) as client:
        submission = await client.submit(jobs, id="once")
    await until_ticks(log, 10)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    await eventually(lambda: not of_system(root) and not working_below(root), within=15)
    second = await asyncio.to_thread(start, root)
    try:
        async with Client.connect(root, timeout=60) as client:
            again = await client.submit(jobs, id="once")
            assert (again.ids, again.repeated) == (submission.ids, True)
            settings = client.settings
            assert settings.postgres is not None
            await check_all(root, settings.postgres.url, log, client)
    finally:
        assert await down(root)
        second.wait(30)
    assert not of_system(root)
    assert not working_below(root)


async def test_a_broker_lost_whole_and_again_and_again_loses_no_job(tmp_path: Path) -> None:
    root = tmp_path / "a system"
    jobs, log = slow_jobs(tmp_path)
    async with quick_system(root) as system, Client.connect(root, timeout=60) as client:
        assert system.broker is not None
        assert system.facts is not None
        submission = await client.submit(jobs, id="once")
        for ticks in (5, 60, 120):
            await until_ticks(log, ticks)
            await system.broker.kill()
        again = await client.submit(jobs, id="once")
        assert (again.ids, again.repeated) == (submission.ids, True)
        await check_all(root, system.facts.postgres_url, log, client)
    assert not working_below(root)
