"""Rounds of provisioning: which pilots are sent, and which of those that are there count."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.matcher.ads import AdSync
from services.pilot_submitter.ce_endpoints import CeEndpoints, EndpointSettings
from services.pilot_submitter.config import Config, PilotFactorySettings, PilotSandboxSettings
from services.pilot_submitter.element_calls import ElementCalls
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.provisioning import Provisioning
from tests.services.job_manager.queries.explained import why
from tests.services.pilot_submitter.elements import ENDS, FakeAway, Site, living
from tests.services.pilot_submitter.placing import FakeFrozen, FakeQueue
from tests.services.world import World
from tests.services.world import pilot as named
from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys
from wms.dispatch.forwarding import HostRequestTerms
from wms.dispatch.local import LocalDispatcher
from wms.ids import PilotId
from wms.messages import replies
from wms.provisioning.plan import PilotCaps
from wms.runtime.config import AuthSettings
from wms.site import ComputingElement


async def test_while_an_element_is_away_its_pilots_go_to_the_next_and_later_they_go_there_again(
    site: Site,
) -> None:
    away = site.dispatcher(FakeAway, "first", ENDS)
    assert isinstance(away, FakeAway)
    provisioning, _ = site.build(first=away, second=site.dispatcher(LocalDispatcher, "second", ENDS))
    await site.advertise("first")
    await site.world.submitted()
    await provisioning.provide()
    assert await site.pilots() == [("first", "Submitting")]
    await site.advertise("second")
    await provisioning.provide()
    assert [ce for ce, _ in await site.pilots()] == ["first", "second"], (
        "the work is counted for the other one"
    )
    away.away = False
    site.now += 1_000.0
    await site.world.submitted()
    await provisioning.provide()
    assert len([ce for ce, _ in await site.pilots() if ce == "first"]) == 1, "what is on its way counts again"


async def test_a_frozen_element_delays_no_pilot_of_another(site: Site) -> None:
    frozen, queue = site.dispatcher(FakeFrozen, "first", ENDS), site.dispatcher(FakeQueue, "second", ENDS)
    assert isinstance(frozen, FakeFrozen)
    assert isinstance(queue, FakeQueue)
    provisioning, _ = site.build(first=frozen, second=queue)
    provisioning._calls = ElementCalls(0.01)
    await site.advertise("first")
    await site.world.submitted()
    await provisioning.provide()
    assert await site.pilots() == [("first", "Submitting")]
    await site.advertise("second")

    async def sent_to_the_other() -> bool:
        provisioning._not_before = 0.0
        await provisioning.provide()
        return len(queue.taken) == 1

    await eventually(sent_to_the_other)
    assert [ce for ce, _ in await site.pilots()] == ["first", "second"], "none more for the one that is busy"
    frozen.thawed.set()
    await eventually(lambda: not provisioning._calls.busy())
    assert len(frozen.taken) == 1


async def test_a_pilot_that_ends_sooner_than_any_job_needs_is_no_supply(site: Site) -> None:
    provisioning, _ = site.build(first=site.dispatcher(LocalDispatcher, "first", ENDS))
    await site.advertise("first")
    await site.world.sql(
        "update ad set element = element || '{\"slots\": 4, \"max_pilots\": 4}' where ce = 'first'"
    )
    who = msgspec.structs.replace(named("p-old"), ce="first")
    await site.world.add_pilot(who, slots=2)
    await site.world.sql("update pilot set dispatcher = 'slurm', state = 'Running', started_at = now()")
    await site.world.submitted(cpu_time=400)
    await provisioning.provide()
    assert await site.pilots() == [("first", "Running")], "it has room, and all the time there is"
    await site.world.sql("update pilot set lifetime_seconds = 86400, started_at = now() - interval '86000 s'")
    await provisioning.provide()
    assert len(await site.pilots()) == 2, "it ends in 400 s, and jobs ask for up to 500"
    (row,) = await site.world.sql("select lifetime_seconds from pilot where pilot_id <> 'p-old'")
    assert row["lifetime_seconds"] == PilotFactorySettings(directory="", keys="").lifetime_seconds
    (plan,) = await site.world.sql("select decision ->> 'ending' as ending from ce_plan")
    assert plan["ending"] == "1"


async def test_no_pilot_is_sent_for_work_that_takes_longer_than_it_lives_and_the_user_is_told(
    site: Site,
) -> None:
    world = site.world
    provisioning, _ = site.build(living(3_600), first=site.dispatcher(LocalDispatcher, "first", ENDS))
    await site.advertise("first")
    (long,) = await world.submitted(cpu_time=4_000)
    for _ in range(2):
        await provisioning.provide()
    assert await site.pilots() == [], "its queue has a million seconds, and its pilots an hour"
    said = await why(world, long)
    assert said.code == "NEVER_POSSIBLE"
    assert "none gives a pilot long enough, for it asks for 5,000 s" in said.summary
    assert "is 3,570 s" in said.summary
    assert said.relaxations[0].changes == ("cpu-time of at most 500 s instead of 5000",)
    warned = await world.submit({"cpu_time": 4_000})
    assert isinstance(warned, replies.Submitted)
    assert [each.code for each in warned.foreseen] == ["NEVER_POSSIBLE"]
    assert "is 3,570 s" in warned.foreseen[0].text
    await world.submitted(cpu_time=400)
    await provisioning.provide()
    assert len(await site.pilots()) == 1, "what is short enough has one"


WITH_GPUS: dict[str, Any] = {"requirements": "other.GPUNumber >= 1"}


async def test_picky_work_is_not_held_back_by_pilots_that_are_of_no_use_to_it(site: Site) -> None:
    """Neither by one that waits for any node, nor by one that is idle on a node that does not do."""
    world = site.world
    dispatcher = site.dispatcher(LocalDispatcher, "first", ENDS)
    provisioning, _ = site.build(
        EndpointSettings(kind="slurm", asks=HostRequestTerms(kind="slurm")), first=dispatcher
    )
    await site.advertise("first")
    await world.sql("update ad set element = element || '{\"slots\": 9}', attributes = '{\"GPUNumber\": 2}'")
    (plain,) = await world.submitted()
    await provisioning.provide()
    await world.submitted(**WITH_GPUS)
    for _ in range(2):
        await provisioning.provide()
    rows = await world.sql("select pilot_id, asks, reason from pilot order by submitted_at")
    assert [bool(row["asks"]) for row in rows] == [False, True]
    assert "asks for gpunumber >= 1" in rows[1]["reason"]
    # The picky pilot is no more; the plain one has begun, did its job, and idles.
    await world.sql("update pilot set state = 'Failed', ended_at = now() where asks <> ''")
    await world.order("kill", plain)
    name = PilotId(rows[0]["pilot_id"])
    await world.sql("update pilot set state = 'Running', started_at = now() where pilot_id = $1", name)
    await provisioning.provide()
    assert len(await site.pilots()) == 2, "its node may do"
    who = msgspec.structs.replace(named(name), ce="first")
    await AdSync(world.db, world.index).refresh()
    await world.report(who, node=(("gpunumber", 0),), slots=1, free_memory_mb=500)
    await provisioning.provide()
    assert len(await site.pilots()) == 3, "and it does not"


async def test_pilots_that_offer_less_than_waiting_work_asks_for_are_no_supply(site: Site) -> None:
    provisioning, _ = site.build(living(86_400), first=site.dispatcher(LocalDispatcher, "first", ENDS))
    await site.advertise("first")
    await site.world.sql(
        'update ad set element = element || \'{"slots": 9, "memory_mb": 8000, "slots_per_pilot": 1}\''
    )
    await site.world.submitted(cpu_time=400)
    await provisioning.provide()
    await site.world.sql("update pilot set state = 'Running', started_at = now() - interval '83000 s'")
    await provisioning.provide()
    assert len(await site.pilots()) == 1
    await site.world.submitted(cpu_time=4_000)
    await provisioning.provide()
    assert len(await site.pilots()) == 2, "of its day it has 3,400 s left"
    await provisioning.provide()
    assert len(await site.pilots()) == 2
    await site.world.sql("update pilot set free_memory_mb = 2000")
    await site.world.submitted(memory_mb=4_000, cpu_time=300)
    await provisioning.provide()
    assert len(await site.pilots()) == 3, "what they are running leaves 2,000 MB"


ENDS_AT_ONCE = [sys.executable, "-c", ""]


@pytest.fixture
async def provisioning(the_world: World, tmp_path: Path) -> Provisioning:
    """Return one that may send pilots to an element with much room."""
    generate_keys(tmp_path / "keys")
    pilots = PilotFactorySettings(directory=str(tmp_path / "pilots"), keys=str(tmp_path / "keys"))
    config = Config(
        auth=AuthSettings(jwks=""), pilots=pilots, sandboxes=PilotSandboxSettings(url="file:///x")
    )
    maker = PilotFactory(config, load_key(tmp_path / "keys" / "pilots.pem"), OrderKeys([b"k" * 32]))
    dispatcher = LocalDispatcher(tmp_path / "pilots", ENDS_AT_ONCE, {"PATH": os.environ["PATH"]})
    endpoints = CeEndpoints(dispatcher, time.monotonic, local_sites=["*"])
    element = ComputingElement(site="A", ce="ce", slots=10, max_cpu_time=10**6, setup="default")
    await the_world.sql(
        "insert into ad (site, ce, element, advertised_at, expires_at)"
        " values ('A', 'ce', $1::text::jsonb, now(), now() + interval '1 h')",
        msgspec.json.encode(element).decode(),
    )
    return Provisioning(
        the_world.db, endpoints, maker, PilotCaps(pilots=8), PilotTracking(the_world.db, endpoints)
    )


@pytest.mark.parametrize("state", ["Submitting", "Submitted", "Waiting"])
async def test_a_pilot_on_its_way_takes_up_a_job(
    the_world: World, provisioning: Provisioning, state: str
) -> None:
    await the_world.submitted()
    await provisioning.provide()
    await the_world.sql("update pilot set state = $1", state)
    await provisioning.provide()
    assert [row["state"] for row in await the_world.sql("select state from pilot")] == [state]
    await the_world.submitted()
    await provisioning.provide()
    assert len(await the_world.sql("select from pilot")) == 2, "another job gets another pilot"
