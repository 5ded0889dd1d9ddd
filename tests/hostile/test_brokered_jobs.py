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

DENIED = "select count(*) from agreement where owner = $1 and code = 'OWNER_QUOTA'"
LAST_RESERVED = """
    select count(agreement_id) from (
        select p.agreement_id from placement p join job j using (job_id) where j.owner = $1 order by p.created_at desc limit 1
    ) as last"""


def brokered(executable: str, *arguments: str, reservation: bool, array: int | None = None) -> JobDescription:
    """Return a description of jobs that the broker places, in reservations or without."""
    return JobDescription(
        executable=executable,
        arguments=arguments,
        cpu_time=60,
        array=array,
        preferences=JobPreferences(reservation=reservation),
    )


@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("reservation", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_ten_thousand_brokered_jobs_of_one_owner_delay_no_other(
    target: Target, innocent: Innocent, *, reservation: bool
) -> None:
    wanted = brokered("/bin/sleep", str(RUN_SECONDS), reservation=reservation)
    other, before = Innocent(innocent.client, target, wanted), await _count(target, RECORDS)
    await other.learn_usual()
    async with Client.connect(target.settings(OWNER)) as mallory:
        async with other.beside() as beside:
            for _ in range(JOBS // AT_ONCE):
                await mallory.submit(brokered("/bin/true", reservation=reservation, array=AT_ONCE))
            await eventually(lambda: _brokered(target, before + JOBS), PATIENCE_SECONDS * 3)
            seen = len(beside.seconds)
            await eventually(lambda: len(beside.seconds) > seen + 3, PATIENCE_SECONDS * 3)
            if reservation:
                # What one user may have reserved is used up, and another of the same VO still gets what it wants.
                await eventually(lambda: _count(target, DENIED), PATIENCE_SECONDS)
                assert await _count(target, LAST_RESERVED, innocent.owner) == 1
        print(f"beside {JOBS:,} brokered jobs: {beside.seconds} s; usual {other.usual_seconds:.2f} s")
        await mallory.kill(select(everything=True))


async def _brokered(target: Target, least: int) -> bool:
    return await _count(target, RECORDS) >= least


async def _count(target: Target, query: str, owner: str = OWNER) -> int:
    connection = await asyncpg.connect(target.database)
    try:
        return int(await connection.fetchval(query, owner))
    finally:
        await connection.close()
