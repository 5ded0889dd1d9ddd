"""A pilot that Slurm lists though it is gone: cancelled until Slurm agrees, even if the word was lost while a node was away."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from deploy.testbed.testbed import Testbed
from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointSettings
from services.pilot_submitter.stray_pilots import StrayPilots
from tests.contract.dispatch.grounds import WAITS, order
from tests.middleware import Sites
from tests.services.world import World, world
from tests.waiting import eventually
from wms.db import pilot
from wms.db.pilot import NewPilot
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.slurm import Cluster, SlurmDispatcher
from wms.ids import CeId, PilotId

pytestmark = [
    pytest.mark.testbed,
    pytest.mark.long,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(300),
]

ENVIRONMENT = {"PATH": os.environ["PATH"] + ":/usr/bin:/bin"}
SHELL = ["/bin/sh", "-c", '. "$2"', "agent"]


@pytest_asyncio.fixture(loop_scope="session")
async def the_world(database: str) -> AsyncIterator[World]:
    async with world(database) as each:
        yield each


async def test_what_slurm_lists_of_ours_and_is_gone_is_cancelled_until_slurm_agrees(
    the_world: World, testbed: Sites, tmp_path: Path
) -> None:
    beta = Testbed.at(testbed.root).clusters["beta"]
    cluster = Cluster(configuration=str(testbed.slurm("beta")))
    dispatcher = SlurmDispatcher(cluster, tmp_path / "pilots", SHELL, ENVIRONMENT)
    now = [1_000.0]
    endpoint = CeEndpoint(CeId("beta", "main"), dispatcher, lambda: now[0], EndpointSettings(kind="slurm"))
    endpoints = CeEndpoints(
        LocalDispatcher(tmp_path / "here", SHELL, ENVIRONMENT), lambda: now[0], [endpoint]
    )
    clearing = StrayPilots(the_world.db, endpoints)
    async with the_world.db.transaction() as tx:
        mark = await pilot.mark(tx)
        sent = [
            NewPilot(pilot_id=name, site="beta", ce="main", vo="v", dispatcher="slurm", slots=1)
            for name in (pilot.new_id(mark), pilot.new_id(mark))
        ]
        await pilot.insert(tx, sent)
    lost, lingers = (each.pilot_id for each in sent)
    unknown = pilot.new_id(mark)
    others = order().pilot_id
    await dispatcher.send([order(WAITS, name) for name in (lost, lingers, unknown, others)])

    def running() -> set[PilotId]:
        return {PilotId(name) for name in beta.run("squeue", "-h", "-t", "R", "-o", "%j").split()}

    try:
        await eventually(lambda: {lost, lingers, unknown, others} <= running(), within=60)
        node = beta.run("squeue", "-h", "-n", lost, "-o", "%N").strip()
        # All that runs there is dead, and Slurm does not know.
        beta.lose_node(node)
        await the_world.sql(
            "update pilot set state = 'Failed', ended_at = now() - interval '1 h', cause = 'NODE_LOST'"
        )
        await clearing.clear()
        listed = set(await dispatcher.alive())
        assert lost in listed, "its node is away: Slurm cannot end what it does not reach"
        beta.start_node(node)

        async def left() -> bool:
            now[0] += 60.0
            await clearing.clear()
            # Another system's is none of ours. A job of a node that came back may be listed again for a moment.
            return set(await dispatcher.alive()) <= {others}

        await eventually(left, within=150)
    finally:
        beta.run("scancel", "--me")
