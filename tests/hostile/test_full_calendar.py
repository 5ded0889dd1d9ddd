"""A calendar that one user fills for hours: another user's reserved job starts as soon as ever."""

import asyncpg
import pytest

from tests.hostile.innocent import PATIENCE_SECONDS, RUN_SECONDS, Innocent
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.agreement.quota import VoQuota
from wms.client import Client, JobDescription, select
from wms.jobdesc.preferences import JobPreferences

OWNER = "mallory"
JOBS = VoQuota().most_of_owner
HOURS = 10
FILLED = """
    select count(*) as reservations, coalesce(extract(epoch from max(ends_at) - now()) / 3600, 0)::float8 as hours
    from agreement where owner = $1 and state in ('Temporary', 'Confirmed')"""
RESERVED = """
    select count(agreement_id) from (
        select p.agreement_id from placement p join job j using (job_id) where j.owner = $1 order by p.created_at desc limit 1
    ) as last"""


def reserved(seconds: int, wall_time: int | None = None, array: int | None = None) -> JobDescription:
    """Return a description of jobs that sleep in reservations: of their wall time, or of a minute."""
    return JobDescription(
        executable="/bin/sleep",
        arguments=(str(seconds),),
        cpu_time=60,
        wall_time=wall_time,
        array=array,
        preferences=JobPreferences(),
    )


@pytest.mark.timeout(900)
async def test_a_calendar_that_one_user_fills_for_hours_delays_no_other(
    target: Target, innocent: Innocent
) -> None:
    other = Innocent(innocent.client, target, reserved(RUN_SECONDS))
    await other.learn_usual()
    connection = await asyncpg.connect(target.database)
    async with Client.connect(target.settings(OWNER)) as mallory:
        async with other.beside() as beside:
            await mallory.submit(reserved(3_000, 3_600, JOBS))

            async def filled() -> bool:
                row = await connection.fetchrow(FILLED, OWNER)
                return bool(row["reservations"] == JOBS and row["hours"] > HOURS)

            await eventually(filled, PATIENCE_SECONDS)
            seen = len(beside.seconds)
            await eventually(lambda: len(beside.seconds) > seen + 3, PATIENCE_SECONDS)
            assert await connection.fetchval(RESERVED, innocent.owner) == 1
        hours = (await connection.fetchrow(FILLED, OWNER))["hours"]
        print(
            f"beside {hours:.0f} h of one user's reservations: {beside.seconds} s; usual {other.usual_seconds:.2f} s"
        )
        await mallory.kill(select(everything=True))
    await connection.close()
