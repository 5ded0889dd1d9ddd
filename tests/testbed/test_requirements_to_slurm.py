"""What a job requires of a host reaches a real Slurm as options of its pilot, which runs on such a node and takes that job."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from tests.middleware import Sites
from tests.system.test_why import OwnShell
from tests.testbed.everywhere import rows, system_everywhere
from tests.waiting import eventually
from wms.audit import audit
from wms.embedded.system import System

pytestmark = [pytest.mark.testbed, pytest.mark.timeout(300)]

SOFTWARE = "GlueHostApplicationSoftwareRunTimeEnvironment"
WANTED = (
    'other.Site == "alpha"'
    f' && member("avx512", other.{SOFTWARE}) && other.GlueHostMainMemoryRAMSize >= 600'
    " && other.GlueHostArchitectureSMPSize != 77777"
)
"""The ad decides the first term, Slurm is asked for two, and the last has no rule: only the agent can tell."""
HOPELESS = f'other.Site == "alpha" && member("no-such-feature", other.{SOFTWARE})'


@pytest_asyncio.fixture(loop_scope="session")
async def system(testbed: Sites) -> AsyncIterator[System]:
    async with system_everywhere(testbed, slots=8) as running:
        yield running


async def submitted(shell: OwnShell, *options: str) -> int:
    assert await shell.run("submit", *options, "--cpu-time", "60", "--", "/bin/sh", "-c", "sleep 1") == 0
    return int(shell.out)


async def test_a_job_with_requirements_runs_on_a_node_that_slurm_was_asked_for(
    system: System, testbed: Sites
) -> None:
    assert system.facts is not None
    url = system.facts.postgres_url
    shell = OwnShell(system)
    hopeless = await submitted(shell, "--requirements", HOPELESS)
    plain = [await submitted(shell, "--site", "alpha") for _ in range(2)]
    picky = await submitted(shell, "--requirements", WANTED)

    async def done() -> bool:
        found = await rows(url, "select job_id, state from job where job_id <> $1", hopeless)
        assert not any(each["state"] in ("Failed", "Killed") for each in found), found
        return {each["job_id"] for each in found if each["state"] == "Done"} == {*plain, picky}

    await eventually(done, within=120)
    ran = await pilot_of(url, picky)
    said = testbed.run("alpha", "scontrol", "-o", "show", "job", ran["reference"])
    assert "Features=avx512" in said
    assert "MinMemoryNode=600M" in said
    assert "NodeList=alpha1 " in said
    assert '"avx512"' in ran["resource"], "what it was asked for with is known of its node"

    assert await shell.run("why", str(hopeless)) == 0
    shown = " ".join(shell.out.split())
    assert 'by its ad: other.site == "alpha"' in shown
    assert f'asked for: {SOFTWARE.lower()} has "no-such-feature" as --constraint=no-such-feature' in shown
    refused = await rows(url, "select reason from pilot where reason like 'refused: %'")
    assert refused, "Slurm knows no such feature, and nobody else suffered for it"
    checks = (await audit(url)).checks
    assert not [each for each in checks if each.violations]


async def pilot_of(url: str, job_id: int) -> asyncpg.Record:
    [found] = await rows(
        url,
        "select p.reference, p.resource from pilot p join attempt a using (pilot_id) where a.job_id = $1",
        job_id,
    )
    return found
