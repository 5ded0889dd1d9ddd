"""Why jobs wait, as users see it at the command line: a whole system with a matcher, whose sites the test plays."""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import msgspec
import pytest_asyncio

from services.job_manager.maintenance.wait_reasons import LONGEST_REST_SECONDS
from tests.system.test_cli import Shell
from tests.waiting import eventually
from wms.embedded.system import System
from wms.site import ComputingElement

LOOKED_AT_SECONDS = 2 * LONGEST_REST_SECONDS
"""Within so long reasons are looked at anew: on a machine that is so busy that a look takes a second, too."""


class OwnShell(Shell):
    """Runs `wms` as the user of a system of one's own."""

    def __init__(self, running: System) -> None:  # the place of another kind of system is not needed
        self.data = running.layout.root
        self.out = self.err = ""


@pytest_asyncio.fixture(loop_scope="session")
async def running(tmp_path: Path, database: str) -> AsyncIterator[System]:
    services = ("job_manager", "matcher")
    own = System(tmp_path / "own", postgres=database, services=services, log_level="warning")
    async with own as system:
        yield system


async def advertise(running: System, **offered: object) -> None:
    given = {"site": "A", "ce": "ce", "setup": "default", "slots": 12, "max_cpu_time": 10**6} | offered
    element = msgspec.convert(given, ComputingElement)
    assert running.facts is not None
    connection = await asyncpg.connect(running.facts.postgres_url)
    try:
        await connection.execute(
            "insert into ad (site, ce, element, advertised_at, expires_at)"
            " values ($1, $2, $3::text::jsonb, now(), now() + interval '1 h')",
            element.site,
            element.ce,
            msgspec.json.encode(element).decode(),
        )
    finally:
        await connection.close()


async def test_a_job_that_cannot_run_is_foreseen_explained_and_kept_out(running: System) -> None:
    shell = OwnShell(running)
    await advertise(running, memory_mb=4_000)
    ask = ("--memory", "8000M", "--", "true")
    # What the job manager knows of ads may be a second old.
    assert await eventually(lambda: refused(shell, *ask))
    assert "CANNOT_RUN" in shell.err or "run nowhere" in shell.err
    assert "memory 4000 MB instead of 8000" in shell.err
    assert await shell.run("jobs", "--json") == 0
    assert shell.out == "", "nothing of it was stored"

    assert await shell.run("submit", *ask) == 0
    assert "warning: NEVER_POSSIBLE: 1 job can never run as it is" in shell.err
    job = shell.out.strip()

    assert await shell.run("why", job) == 0, shell.err
    assert f"job {job}: no computing element known could ever run it (NEVER_POSSIBLE)" in shell.out
    assert "memory 4000 MB instead of 8000 (12 slots at A)" in shell.out
    answer = await shell.json("why", job)
    assert answer["failing"] == {"memory": 1}
    assert answer["relaxations"][0]["slots"] == 12

    assert await eventually(lambda: listed(shell, job, "NEVER_POSSIBLE"), LOOKED_AT_SECONDS)
    await advertise(running, ce="large", memory_mb=16_000)
    assert await eventually(lambda: listed(shell, job, "NO_PILOT"), LOOKED_AT_SECONDS)
    assert await shell.run("logs", job) == 0
    assert "waits, NO_PILOT: no pilot runs" in shell.err


async def refused(shell: OwnShell, *ask: str) -> bool:
    return await shell.run("submit", "--strict", *ask) != 0 and "4000 MB" in shell.err


async def listed(shell: OwnShell, job: str, reason: str) -> bool:
    assert (await shell.json("jobs", job))["reason"] == reason
    return True
