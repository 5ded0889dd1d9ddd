"""Databases of earlier versions become those of this one, with all that waited, ran, was held, shared and limited in them.

Each dump in tests/data/dumps is of a system of the commit that it is named after: sweeps that wait, jobs that run, ended and are held,
a share, and limits.
"""

import gzip
from pathlib import Path

import asyncpg
import pytest

from wms.audit.auditor import audit
from wms.db.migrate import check, migrate

DUMPS = sorted((Path(__file__).parents[1] / "data" / "dumps").glob("*.sql.gz"))
NAMES = [dump.name.removesuffix(".sql.gz") for dump in DUMPS]
STATES = {"Done": 3, "Failed": 1, "Running": 2, "Waiting": 526, "Held": 1}
COUNTS = """
select state, sum(jobs)::int as jobs
from (select state, 1 as jobs from job union all select state, last - first + 1 from block) as found
group by state
"""


async def restore(url: str, dump: Path) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(gzip.decompress(dump.read_bytes()).decode())
    await connection.close()


@pytest.mark.parametrize("dump", DUMPS, ids=NAMES)
async def test_a_database_of_an_earlier_commit_is_upgraded_whole(empty_database: str, dump: Path) -> None:
    await restore(empty_database, dump)
    assert await migrate(empty_database)
    await check(empty_database)
    report = await audit(empty_database)
    assert report.ok, report.text()
    connection = await asyncpg.connect(empty_database)
    try:
        assert {row["state"]: row["jobs"] for row in await connection.fetch(COUNTS)} == STATES
        assert await connection.fetchval("select job_share from share where owner_group = 'user'") == 3
        assert await connection.fetchval("select count(*) from limit_rule") == 2
        former = "select 1 from pg_class where relname in ('job_by_site', 'job_unmatched')"
        assert not await connection.fetch(former)
    finally:
        await connection.close()
