"""A whole system of two sites starts two jobs together, each in a slot of its own site; also when the broker dies amid it."""

import os
import signal
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from tests.system.test_reserved_jobs import OTHER, SLOTS, reserving, two_sites
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription
from wms.embedded.system import System
from wms.faultpoint import BROKER_POINTS
from wms.jobdesc.preferences import JobPreferences

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAIR = JobDescription(
    executable="/bin/true",
    cpu_time=60,
    wall_time=60,
    max_attempts=20,
    array=2,
    coallocate=True,
    preferences=JobPreferences(),
)
BUSY = JobDescription(
    executable="/bin/true",
    cpu_time=30,
    wall_time=30,
    processors=SLOTS,
    preferences=JobPreferences(flexible=False),
)
"""A job that reserves all of one site."""
HALF_A_MINUTE = "update agreement set ends_at = greatest(now(), start_at) + interval '30 s' where state = 'Confirmed' returning 1"
"""Ends a reservation soon. The shortest that is asked for has two minutes, since it holds the time that a pilot itself takes."""
LIVING = "select count(*) from agreement where state in ('Requested', 'Temporary', 'Confirmed')"


async def ran_together(system: System, connection: asyncpg.Connection, client: Client) -> None:
    """Submit a pair, see that both ran in slots that start together, and that nothing stays reserved."""
    submission = await client.submit([PAIR])
    assert await client.wait(submission.selector(), timeout=200) == {"Done": 2}
    rows = await connection.fetch(
        "select p.site, p.start_at, a.accepted_at from placement p join attempt a using (job_id)"
        " where p.job_id = any ($1::bigint[]) and p.state = 'Ended'",
        list(submission.job_ids()),
    )
    assert {row["site"] for row in rows} == {"local", OTHER}
    starts = [row["start_at"] for row in rows]
    assert (max(starts) - min(starts)).total_seconds() <= 1
    assert all(row["accepted_at"] >= row["start_at"] for row in rows)

    async def free() -> bool:
        return not await connection.fetchval(LIVING)

    await eventually(free, within=90)
    assert system.facts is not None
    report = await audit(system.facts.postgres_url)
    assert report.ok, report.text(brief=True)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sites(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[System, asyncpg.Connection, Client]]:
    async with (
        two_sites(tmp_path_factory.mktemp("pairs")) as (system, connection),
        Client.connect(system.layout.root, timeout=60) as client,
    ):
        await eventually(lambda: reserving(connection), within=60)
        yield system, connection, client


async def test_two_jobs_start_together_though_one_site_is_free_later(
    sites: tuple[System, asyncpg.Connection, Client],
) -> None:
    system, connection, client = sites
    await client.submit(BUSY)

    async def is_busy() -> bool:
        return bool(await connection.fetchval(HALF_A_MINUTE))

    await eventually(is_busy, within=60)
    await ran_together(system, connection, client)


async def test_a_broker_that_dies_amid_the_steps_of_a_group_starts_both_jobs(
    sites: tuple[System, asyncpg.Connection, Client],
) -> None:
    system, connection, client = sites
    # The first step asks, later ones confirm and place.
    for time, point in enumerate(sorted(BROKER_POINTS), start=1):
        await restart(system, WMS_FAULTPOINT=f"{point}:{time}", WMS_BROKERING__CLAIM_SECONDS="2")
        armed = starts(system)
        await ran_together(system, connection, client)
        await started_after(system, armed)
        assert system.state().children["resource_broker"].last_exit == -signal.SIGKILL


def starts(system: System) -> int:
    return system.state().children["resource_broker"].starts


async def started_after(system: System, before: int) -> None:
    await eventually(lambda: starts(system) > before, within=60)


async def restart(system: System, **variables: str) -> None:
    """Kill the broker; its next life, and only that, has these variables."""
    server = system.supervisor._servers["resource_broker"]
    before = starts(system)
    server.environment |= variables
    pid = system.supervisor.pid_of("resource_broker")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await started_after(system, before)
    for variable in variables:
        del server.environment[variable]
