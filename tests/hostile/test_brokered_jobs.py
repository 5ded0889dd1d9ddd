"""Ten thousand brokered jobs of one owner: the brokered job of another takes no more than twice its usual time."""

import asyncpg
import pytest

from tests.hostile.innocent import PATIENCE_SECONDS, RUN_SECONDS, Innocent
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import Client, JobDescription, select
from wms.jobdesc.preferences import JobPreferences

OWNER = "mallory"
JOBS, AT_ONCE = 10_000, 2_000
RECORDS = "select count(*) from job_record where owner = $1"


def brokered(executable: str, *arguments: str, array: int | None = None) -> JobDescription:
    """Return a description of jobs that the broker places without reservations."""
    return JobDescription(
        executable=executable,
        arguments=arguments,
        cpu_time=60,
        array=array,
        preferences=JobPreferences(reservation=False),
    )


@pytest.mark.timeout(1_500)
async def test_ten_thousand_brokered_jobs_of_one_owner_delay_no_other(
    target: Target, innocent: Innocent
) -> None:
    wanted = brokered("/bin/sleep", str(RUN_SECONDS))
    other = Innocent(innocent.client, target, wanted)
    await other.learn_usual()
    async with Client.connect(target.settings(OWNER)) as mallory:
        async with other.beside() as beside:
            for _ in range(JOBS // AT_ONCE):
                await mallory.submit(brokered("/bin/true", array=AT_ONCE))
            await eventually(lambda: _brokered(target, JOBS), PATIENCE_SECONDS * 3)
            seen = len(beside.seconds)
            await eventually(lambda: len(beside.seconds) > seen + 3, PATIENCE_SECONDS * 3)
        print(f"beside {JOBS:,} brokered jobs: {beside.seconds} s; usual {other.usual_seconds:.2f} s")
        await mallory.kill(select(everything=True))


async def _brokered(target: Target, least: int) -> bool:
    return await _count(target, RECORDS) >= least


async def _count(target: Target, query: str) -> int:
    connection = await asyncpg.connect(target.database)
    try:
        return int(await connection.fetchval(query, OWNER))
    finally:
        await connection.close()
