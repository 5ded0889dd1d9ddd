"""One of two instances of a service stops with transactions open, and never goes on; jobs of others wait for it only briefly."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.run import quick_system
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription, Submission
from wms.embedded.server import Program
from wms.embedded.system import System
from wms.jobdesc.preferences import JobPreferences

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

TRUE = JobDescription(executable="/bin/true", cpu_time=60, max_attempts=20)
BROKERED = JobDescription(executable="/bin/true", cpu_time=60, max_attempts=20, preferences=JobPreferences())
LIMIT_SECONDS = 25.0
"""What jobs need at most while an instance is stopped: 6 s until its locks are free, their own time, and some for a busy machine."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with quick_system(tmp_path_factory.mktemp("frozen")) as each:
        yield each


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def client(system: System) -> AsyncIterator[Client]:
    async with Client.connect(system.layout.root, timeout=60) as each:
        yield each


@pytest.mark.parametrize(
    ("service", "point", "jobs"),
    [
        ("job_manager", "consumer.before_commit:20", [TRUE] * 20),
        ("job_manager", "relay.before_send:2", [TRUE] * 20),
        ("matcher", "consumer.before_commit:20", [TRUE] * 20),
        ("resource_broker", "broker.after_claim:2", [BROKERED] * 2),
        ("resource_broker", "broker.after_step:2", [BROKERED] * 2),
    ],
)
async def test_a_frozen_instance_delays_jobs_for_seconds_alone(
    system: System, client: Client, tmp_path: Path, service: str, point: str, jobs: list[JobDescription]
) -> None:
    config = system.layout.service(service) / "config.toml"
    argv = [sys.executable, "-m", f"services.{service}", "--config", str(config)]
    armed = {"WMS_FAULTPOINT": f"{point}:stop"}
    async with Program(tmp_path, name=f"{service}_2", argv=argv, env=armed) as second:
        assert second.pid is not None
        pid = second.pid
        traffic = asyncio.create_task(submit_until_stopped(client, pid, jobs))
        await eventually(lambda: is_stopped(pid), within=120)
        began = time.monotonic()
        try:
            await traffic
            # Several, of which some come to partitions of the stopped instance.
            for each in [await client.submit(jobs) for _ in range(3)]:
                assert await client.wait(each.selector(), timeout=240) == {"Done": len(jobs)}
            seconds = time.monotonic() - began
            sys.stderr.write(f"{service} {point}: {seconds:.1f} s\n")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert seconds < LIMIT_SECONDS
    assert system.facts is not None
    report = await audit(system.facts.postgres_url)
    assert report.ok, report.text(brief=True)


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


async def submit_until_stopped(client: Client, pid: int, jobs: list[JobDescription]) -> None:
    """Submit jobs, so that the instance has work, until it is stopped; the next ones when the last have ended."""
    while not is_stopped(pid):
        submission = await client.submit(jobs)

        async def over(submission: Submission = submission) -> bool:
            return is_stopped(pid) or await client.counts(submission.selector()) == {"Done": len(jobs)}

        await eventually(over, within=120)
