"""What the payloads of one agent share, from its beginning to its end."""

import asyncio
import sys
from pathlib import Path

from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.run import Payload
from services.job_agent.payload.workplace import NAMESPACES, NOT_ISOLATED, Workplace
from tests.services.job_agent.payload.processes import CAN_ISOLATE, DAEMON, STAY, alive, new_tag, until
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store


async def test_leaving_the_workplace_ends_its_payloads(tmp_path: Path) -> None:
    tag = new_tag()
    store = open_store(f"file://{tmp_path}/store")
    async with Workplace(root=tmp_path, store=store, site=SiteName("S"), pilot_id=PilotId("p")) as workplace:
        description = JobDescription(executable=sys.executable, arguments=("-c", DAEMON + STAY, tag))
        payload = Payload(workplace, JobId(1), Epoch(1), description)
        running = asyncio.create_task(payload.run())
        await until(lambda: len(alive(tag)) == 2)
        pid = workplace.processes.shepherd_pid
    assert alive(tag) == []
    assert not Path(f"/proc/{pid}").exists()
    assert (await running).reason.code is Code.AGENT_ERROR


async def test_it_says_how_payloads_are_isolated(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    bare = Workplace(root=tmp_path / "a", store=store, site=SiteName("S"), pilot_id=PilotId("p"))
    async with bare:
        assert bare.isolation_words == NOT_ISOLATED
    auto = Workplace(
        root=tmp_path / "b",
        store=store,
        site=SiteName("S"),
        pilot_id=PilotId("p"),
        isolation=PayloadIsolation(),
    )
    async with auto:
        assert auto.isolation_words == (NAMESPACES if CAN_ISOLATE else NOT_ISOLATED)
