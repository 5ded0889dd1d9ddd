"""A node that vanishes under a pilot: the job comes back and ends elsewhere, and its timeline says what was seen."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from deploy.testbed.testbed import Testbed
from tests.middleware import Sites
from tests.testbed.everywhere import rows, system_everywhere
from tests.waiting import eventually
from wms.audit import audit
from wms.cli.timeline import told
from wms.client import Client, JobDescription
from wms.embedded.system import System

pytestmark = [pytest.mark.testbed, pytest.mark.timeout(600)]

LEASES = {"WMS_LEASE__LEASE_SECONDS": "20", "WMS_LEASE__OFFER_SECONDS": "10"}


@pytest_asyncio.fixture(loop_scope="session")
async def system(testbed: Sites) -> AsyncIterator[System]:
    async with system_everywhere(testbed, environment=LEASES) as running:
        yield running


async def test_a_job_whose_node_vanished_ends_on_another_node_under_another_pilot(
    system: System, testbed: Sites
) -> None:
    assert system.facts is not None
    url = system.facts.postgres_url
    beta = Testbed.at(testbed.root).clusters["beta"]
    # The first attempt goes on until its node is lost; the next one finds the file, and ends.
    mark = testbed.root / "system" / "was here"
    waits = 'test -e "$1" && exit 0; touch "$1"; exec sleep 1000'
    async with Client.connect(system.layout.root, timeout=60) as client:
        submitted = await client.submit(
            JobDescription(
                executable="/bin/sh",
                arguments=("-c", waits, "sh", str(mark)),
                sites=("beta",),
                cpu_time=60,
            )
        )
        (job_id,) = submitted.job_ids()
        await eventually(mark.exists, within=180)
        ((first,),) = await rows(url, "select pilot_id from lease")
        node = beta.run("squeue", "-h", "-n", first, "-o", "%N").strip()
        beta.lose_node(node)
        assert await client.wait(submitted.selector(), timeout=180) == {"Done": 1}
        detail = await client.show(job_id)
    beta.start_node(node)
    lost, done = detail.attempts
    assert (lost.outcome, done.outcome) == ("lost", "done")
    assert lost.reason in ("LEASE_EXPIRED", "NODE_LOST", "PILOT_FORGOTTEN"), "nobody saw it end"
    assert lost.pilot_id == first != done.pilot_id
    entries = [(each.who, each.what) for each in told(detail)]
    assert (f"pilot {first}", "took the job under a lease at beta/main") in entries
    assert any(
        what.startswith(f"the attempt ended, lost  {lost.reason}: pilot {first}") for _, what in entries
    )
    assert (await audit(url)).ok

    async def known_as_lost() -> bool:
        ((state, cause, word),) = await rows(
            url, "select state, cause, word from pilot where pilot_id = $1", first
        )
        return state in ("Failed", "Aborted") and cause in ("NODE_LOST", "PILOT_FORGOTTEN") and word

    await eventually(known_as_lost, within=120)
    names = testbed.run("beta", "squeue", "-h", "-o", "%j").split()
    assert first not in names, "Slurm starts no pilot a second time"
