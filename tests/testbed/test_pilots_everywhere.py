"""Jobs through pilots on two Slurm clusters, an ARC element and this machine at once: all end Done."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.middleware import Sites
from tests.testbed.everywhere import KINDS, rows, system_everywhere
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription, select
from wms.embedded.system import System

pytestmark = [pytest.mark.testbed, pytest.mark.timeout(480)]

JOBS_AT_EACH = 6


@pytest_asyncio.fixture(loop_scope="session")
async def system(testbed: Sites) -> AsyncIterator[System]:
    async with system_everywhere(testbed) as running:
        yield running


async def test_jobs_end_done_through_pilots_of_every_kind_at_once(system: System) -> None:
    assert system.facts is not None
    url = system.facts.postgres_url
    async with Client.connect(system.layout.root, timeout=60) as client:
        submitted = await client.submit(
            [
                JobDescription(
                    executable="/bin/sh",
                    arguments=("-c", "echo $WMS_SITE; sleep 0.2"),
                    sites=(site,),
                    cpu_time=60,
                    array=JOBS_AT_EACH,
                )
                for site in KINDS
            ]
        )
        counts = await client.wait(submitted.selector(), timeout=180)
        assert counts == {"Done": JOBS_AT_EACH * len(KINDS)}
        assert {job.site async for job in client.jobs(select(everything=True))} == set(KINDS)

    ran = {
        row["site"]: row
        for row in await rows(
            url,
            "select site, dispatcher, count(*) filter (where jobs_done > 0) as worked, sum(jobs_done) as jobs from pilot group by 1, 2",
        )
    }
    assert {site: (row["dispatcher"], row["jobs"]) for site, row in ran.items()} == {
        site: (kind, JOBS_AT_EACH) for site, kind in KINDS.items()
    }
    assert (await audit(url)).ok

    async def all_ended_well_and_left_their_words() -> bool:
        found = await rows(url, "select pilot_id, site, state, reason, output from pilot")
        assert [row for row in found if row["state"] != "Done" or "pilot" not in (row["output"] or "")] == []
        return True

    await eventually(all_ended_well_and_left_their_words, within=180)
