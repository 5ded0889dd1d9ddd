"""A whole system brokers a job: ranked, placed, run by a pilot of its own, and its predictions scored."""

from pathlib import Path

import pytest

from tests.waiting import eventually
from wms.client import Client, JobDescription
from wms.embedded.system import System
from wms.jobdesc.preferences import JobPreferences


@pytest.mark.timeout(120)
async def test_a_job_with_preferences_is_placed_and_runs(tmp_path: Path) -> None:
    wanted = JobDescription(executable="/bin/true", cpu_time=60, preferences=JobPreferences())
    async with (
        System(tmp_path, durable=False) as system,
        Client.connect(system.layout.root, timeout=60) as client,
    ):
        submission = await client.submit([wanted])
        assert await client.wait(submission.selector(), timeout=90) == {"Done": 1}
        found = await client.ranking(submission.ids[0][0])
        assert [(each.site, each.rank) for each in found.elements] == [("local", 1)]
        assert [each.attempt for each in found.placements] == [1]

        async def scored() -> bool:
            return any(each.scored for each in await client.predictions())

        await eventually(scored, within=30)
