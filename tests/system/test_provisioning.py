"""Pilots on a whole system that runs: how soon they come, and what an operator orders of sites."""

import json
import time
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from tests.conftest import _fresh_database as fresh_database
from tests.system.test_why import OwnShell
from tests.waiting import eventually
from wms.embedded.system import System

SOON_SECONDS = 5.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: str, template: str
) -> AsyncIterator[System]:
    async for database in fresh_database(postgres_server, template):
        own = System(
            tmp_path_factory.mktemp("pilots") / "own", postgres=database, slots=2, log_level="warning"
        )
        async with own as running:
            yield running


async def advertised(shell: OwnShell) -> bool:
    return await shell.run("sites", "--json") == 0 and '"fresh":true' in shell.out.replace(" ", "")


async def pilots_after(system: System, job_id: int) -> list[float]:
    """Return how many seconds after the job's submission each pilot went on its way, by the database's clock."""
    assert system.facts is not None
    connection = await asyncpg.connect(system.facts.postgres_url)
    try:
        rows = await connection.fetch(
            "select extract(epoch from p.submitted_at - j.submitted_at)::float8 as seconds"
            " from pilot p, job j where j.job_id = $1 and p.state <> 'Submitting'",
            job_id,
        )
    finally:
        await connection.close()
    return [row["seconds"] for row in rows]


async def test_a_pilot_is_on_its_way_soon_where_there_is_room(system: System) -> None:
    shell = OwnShell(system)
    assert await eventually(lambda: advertised(shell))
    assert await shell.run("submit", "--", "true") == 0
    job_id = int(shell.out)
    began = time.monotonic()
    assert await eventually(lambda: pilots_after(system, job_id))
    (seconds,) = await pilots_after(system, job_id)
    print(
        f"pilot on its way {seconds:.2f} s after the submission, seen after {time.monotonic() - began:.2f} s"
    )
    assert 0 <= seconds <= SOON_SECONDS
    assert await shell.run("wait", str(job_id), "--within", "60s") == 0

    assert await shell.run("pilots", "--why", "--json") == 0
    (plan,) = json.loads(shell.out)
    assert plan["decision"]["ce"] == "local"
    assert await shell.run("pilots", "--why") == 0
    assert "HELD BY" in shell.out or "no job waits" in shell.out


async def test_a_banned_site_gets_no_job_until_it_is_opened_and_a_test_says_how_it_does(
    system: System,
) -> None:
    shell = OwnShell(system)
    assert await eventually(lambda: advertised(shell))
    (site,) = {each["site"] for each in json.loads(shell.out)}
    assert await shell.run("site", "ban", site) == 2, "a ban says why"
    assert await shell.run("site", "ban", site, "--reason", "broken disks") == 0, shell.err
    assert await shell.run("submit", "--", "true") == 0
    job_id = shell.out.strip()

    async def explained() -> bool:
        assert await shell.run("why", job_id) == 0
        return "broken disks" in shell.out

    assert await eventually(explained)
    assert "avoid" in shell.out

    assert await shell.run("site", "test", site, "--within", "60s") == 0, shell.err
    assert "all canaries came back well" in shell.out
    assert (await shell.json("status", job_id))["counts"] == {"Waiting": 1}, "it is banned still"
    # What was seen of the canary, and what follows from it, are written down when they are looked at next.
    assert await eventually(lambda: says(shell, ("site", "show", site), "broken disks", "Done"), within=30)
    assert await eventually(lambda: says(shell, ("pilots", "--why"), "BANNED"), within=30)

    assert await shell.run("site", "unban", site) == 0
    assert await shell.run("wait", job_id, "--within", "60s") == 0
    assert await shell.run("audit") == 0, shell.out


async def says(shell: OwnShell, command: tuple[str, ...], *words: str) -> bool:
    assert await shell.run(*command) == 0
    return all(word in shell.out for word in words)
