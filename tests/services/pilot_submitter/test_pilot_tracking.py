"""A pilot that is about to run, or whose sender died, is never taken for dead: its leases would be given away early."""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from services.pilot_submitter.ce_endpoints import CeEndpoints
from services.pilot_submitter.config import Config, PilotFactorySettings, PilotSandboxSettings
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.provisioning import Provisioning
from tests.services.pilot_submitter.elements import ENDS, FakeAway, Site
from tests.services.world import World
from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys
from wms.db import pilot
from wms.db.pilot import NewPilot
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import PilotRequest, PilotSighting
from wms.ids import PilotId
from wms.provisioning.plan import PilotCaps
from wms.runtime.config import AuthSettings
from wms.site import ComputingElement

WAITS = "import signal; signal.pause()"


class Gated(LocalDispatcher):
    """Sends only when it may."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, [sys.executable, "-c", WAITS], {"PATH": os.environ["PATH"]})
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        self.asked.set()
        await self.gate.wait()
        return await super().send(orders)


@pytest.fixture
def provisioning(the_world: World, tmp_path: Path) -> tuple[Provisioning, PilotTracking, Gated]:
    generate_keys(tmp_path / "keys")
    pilots = PilotFactorySettings(directory=str(tmp_path / "pilots"), keys=str(tmp_path / "keys"))
    config = Config(
        auth=AuthSettings(jwks=""), pilots=pilots, sandboxes=PilotSandboxSettings(url="file:///x")
    )
    maker = PilotFactory(config, load_key(tmp_path / "keys" / "pilots.pem"), OrderKeys([b"k" * 32]))
    gated = Gated(tmp_path / "pilots")
    endpoints = CeEndpoints(gated, time.monotonic, local_sites=["*"])
    following = PilotTracking(the_world.db, endpoints)
    return Provisioning(the_world.db, endpoints, maker, PilotCaps(pilots=4), following), following, gated


async def test_a_pilot_not_yet_sent_is_not_taken_for_dead(
    the_world: World, provisioning: tuple[Provisioning, PilotTracking, Gated]
) -> None:
    one, follower, gated = provisioning
    element = ComputingElement(site="A", ce="ce", slots=1, max_cpu_time=10**6, setup="default")
    await the_world.sql(
        "insert into ad (site, ce, element, advertised_at, expires_at)"
        " values ('A', 'ce', $1::text::jsonb, now(), now() + interval '1 h')",
        msgspec.json.encode(element).decode(),
    )
    await the_world.submitted()
    providing = asyncio.create_task(one.provide())
    await gated.asked.wait()
    following = asyncio.create_task(follower.follow())
    # Time for it to look, were it let.
    await asyncio.wait([following], timeout=0.3)
    gated.gate.set()
    await providing
    await following
    (pilot,) = await the_world.sql("select pilot_id, state, ended_at from pilot")
    assert pilot["ended_at"] is None
    assert pilot["state"] in ("Submitted", "Running")
    await gated.cancel([pilot["pilot_id"]])
    await eventually(lambda: _gone(gated))


async def _gone(dispatcher: LocalDispatcher) -> bool:
    return not await dispatcher.alive()


async def test_a_pilot_whose_sender_died_before_it_could_write_its_number_runs(tmp_path: Path) -> None:
    sender = Gated(tmp_path)
    sender.gate.set()
    name = PilotId("p-unmarked")
    await sender.send([PilotRequest(pilot_id=name, site="S", ce="c", slots=1, config="", token="t")])
    (tmp_path / name / "process").unlink()
    another = Gated(tmp_path)
    (sighting,) = await another.follow([name])
    assert sighting.state == "Running"
    assert await another.alive() == [name]
    await another.cancel([name])

    async def over() -> bool:
        await sender.follow([name])
        return (await another.follow([name]))[0].state == "Aborted"

    await eventually(over)


async def test_what_a_pilot_printed_is_kept_after_its_end_and_asked_for_once(site: Site) -> None:
    provisioning, following = site.build(first=site.dispatcher(LocalDispatcher, "first", ENDS))
    await site.advertise("first")
    await site.world.submitted()
    await provisioning.provide()

    async def kept() -> str | None:
        await following.follow()
        await following.fetch_outputs()
        (row,) = await site.world.sql("select output from pilot")
        return row["output"]  # type: ignore[no-any-return]

    assert await eventually(kept) == "my last words\n"
    async with site.world.db.transaction() as tx:
        assert await pilot.unfetched(tx, within=3_600.0, since=0.0, limit=10) == []


async def test_a_pilot_that_another_instance_may_be_sending_is_not_taken_for_dead_until_it_is_old(
    site: Site,
) -> None:
    _, following = site.build(first=site.dispatcher(LocalDispatcher, "first", ENDS))
    sent = NewPilot(pilot_id=PilotId("p-x"), site="A", ce="first", vo="v", dispatcher="slurm", slots=1)
    async with site.world.db.transaction() as tx:
        await pilot.insert(tx, [sent])
    await following.follow()
    assert await site.pilots() == [("first", "Submitting")]
    await site.world.sql("update pilot set submitted_at = now() - interval '2 min'")
    await following.follow()
    assert await site.pilots() == [("first", "Aborted")]


async def test_the_end_of_one_sending_leaves_the_pilots_of_another_safe(site: Site) -> None:
    _, following = site.build(first=site.dispatcher(LocalDispatcher, "first", ENDS))
    sent = NewPilot(pilot_id=PilotId("p-x"), site="A", ce="first", vo="v", dispatcher="slurm", slots=1)
    with following.sending() as names:
        with following.sending():
            pass  # both know of no pilot yet, so that their sets are equal
        names.add(sent.pilot_id)
        async with site.world.db.transaction() as tx:
            await pilot.insert(tx, [sent])
        await site.world.sql("update pilot set submitted_at = now() - interval '2 min'")
        await following.follow()
        assert await site.pilots() == [("first", "Submitting")]


async def test_of_an_element_that_is_away_no_pilot_is_taken_for_dead(site: Site) -> None:
    away = site.dispatcher(FakeAway, "first", ENDS)
    _, following = site.build(first=away)
    sent = NewPilot(pilot_id=PilotId("p-x"), site="A", ce="first", vo="v", dispatcher="slurm", slots=1)
    async with site.world.db.transaction() as tx:
        await pilot.insert(tx, [sent])
    await site.world.sql("update pilot set submitted_at = now() - interval '2 h'")
    await following.follow()
    assert await site.pilots() == [("first", "Submitting")]
