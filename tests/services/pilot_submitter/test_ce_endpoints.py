"""What becomes of pilots whose element is away, refuses them, or kills them; and what is kept of those that ended."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.matcher.ads import Elements
from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointTerms
from services.pilot_submitter.config import Config, PilotFactorySettings, PilotSandboxSettings
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.provisioning import Provisioning
from tests.services.job_manager.queries.test_why import why
from tests.services.world import World
from tests.services.world import pilot as named
from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys
from wms.db import pilot
from wms.db.pilot import NewPilot
from wms.dispatch.forwarding import DoorTerms
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.policy import JobPolicy
from wms.dispatch.port import PilotRequest, PilotSighting
from wms.errors import Unavailable
from wms.ids import CeId, PilotId
from wms.messages import replies
from wms.messages.reports import Unfit
from wms.provisioning.plan import Caps
from wms.runtime.config import AuthSettings
from wms.site import ComputingElement

ENDS = ["/bin/sh", "-c", "echo my last words; exit 0"]
STAYS = ["/bin/sh", "-c", "echo here; exec sleep 600"]
DIES = ["/bin/sh", "-c", "echo no such library; exit 1"]


class FakeAway(LocalDispatcher):
    """Stands for a middleware that does not answer, until it is told to."""

    away = True

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        if self.away:
            raise Unavailable("no route")
        return await super().send(orders)

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        if self.away:
            raise Unavailable("no route")
        return await super().follow(pilot_ids)


class Site:
    """A pilot submitter with two elements, `first` and `second`, of which the first is preferred for nothing."""

    def __init__(self, world: World, place: Path) -> None:
        self.world = world
        self.place = place
        self.now = 1_000.0
        generate_keys(place / "keys")
        pilots = PilotFactorySettings(directory=str(place / "pilots"), keys=str(place / "keys"))
        config = Config(
            auth=AuthSettings(jwks=""), pilots=pilots, sandboxes=PilotSandboxSettings(url="file:///x")
        )
        self.maker = PilotFactory(config, load_key(place / "keys" / "pilots.pem"), OrderKeys([b"k" * 32]))

    def build(
        self, terms: EndpointTerms | None = None, **dispatchers: LocalDispatcher
    ) -> tuple[Provisioning, PilotTracking]:
        clock = lambda: self.now  # noqa: E731 - a clock that the test sets
        asked = terms or EndpointTerms(kind="slurm")
        ways = [CeEndpoint(CeId("A", ce), each, clock, asked) for ce, each in dispatchers.items()]
        doors = CeEndpoints(LocalDispatcher(self.place / "local", ENDS, {}), clock, ways, local_sites=["*"])
        following = PilotTracking(self.world.db, doors, settled_seconds=0.0)
        return Provisioning(self.world.db, doors, self.maker, Caps(pilots=8), following), following

    def dispatcher(self, kind: type[LocalDispatcher], name: str, argv: Sequence[str]) -> LocalDispatcher:
        return kind(self.place / name, argv, {"PATH": os.environ["PATH"]})

    async def advertise(self, *names: str) -> None:
        for ce in names:
            element = ComputingElement(
                site="A", ce=ce, slots=1, max_cpu_time=10**6, setup="default", dispatcher="slurm"
            )
            await self.world.sql(
                "insert into ad (site, ce, element, advertised_at, expires_at)"
                " values ('A', $1, $2::text::jsonb, now(), now() + interval '1 h')",
                *(ce, msgspec.json.encode(element).decode()),
            )

    async def pilots(self) -> list[tuple[str, str]]:
        rows = await self.world.sql("select ce, state from pilot order by submitted_at")
        return [(row["ce"], row["state"]) for row in rows]


def living(seconds: float) -> EndpointTerms:
    return EndpointTerms(kind="slurm", lifetime_seconds=seconds)


@pytest.fixture
def site(the_world: World, tmp_path: Path) -> Site:
    return Site(the_world, tmp_path)


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


async def test_where_pilots_die_unseen_no_more_are_sent_for_a_while(site: Site) -> None:
    provisioning, following = site.build(first=site.dispatcher(LocalDispatcher, "first", DIES))
    await site.advertise("first")
    await site.world.submitted()
    await provisioning.provide()

    async def dead() -> bool:
        await following.follow()
        return await site.pilots() == [("first", "Failed")]

    await eventually(dead)
    for _ in range(3):
        await provisioning.provide()
    assert len(await site.pilots()) == 1
    site.now += 1_000.0
    await provisioning.provide()
    assert len(await site.pilots()) == 2


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


async def test_of_an_element_that_is_away_no_pilot_is_taken_for_dead(site: Site) -> None:
    away = site.dispatcher(FakeAway, "first", ENDS)
    _, following = site.build(first=away)
    sent = NewPilot(pilot_id=PilotId("p-x"), site="A", ce="first", vo="v", dispatcher="slurm", slots=1)
    async with site.world.db.transaction() as tx:
        await pilot.insert(tx, [sent])
    await site.world.sql("update pilot set submitted_at = now() - interval '2 h'")
    await following.follow()
    assert await site.pilots() == [("first", "Submitting")]


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


async def test_what_a_door_says_of_its_pilots_lives_is_news_once(site: Site) -> None:
    await site.advertise("first")
    dispatcher = site.dispatcher(LocalDispatcher, "first", ENDS)
    for lifetime in (3_600.0, 90_000.0):
        provisioning, _ = site.build(living(lifetime), first=dispatcher)
        for _ in range(2):
            await provisioning.provide()
        (row,) = await site.world.sql("select pilot_seconds, xmin::text as written from ad")
        assert row["pilot_seconds"] == lifetime, "a new configuration is told"
        await provisioning.provide()
        (again,) = await site.world.sql("select pilot_seconds, xmin::text as written from ad")
        assert again == row


WITH_GPUS: dict[str, Any] = {"requirements": "other.GPUNumber >= 1"}


async def test_picky_work_is_not_held_back_by_pilots_that_are_of_no_use_to_it(site: Site) -> None:
    """Neither by one that waits for any node, nor by one that is idle on a node that does not do."""
    world = site.world
    dispatcher = site.dispatcher(LocalDispatcher, "first", ENDS)
    provisioning, _ = site.build(EndpointTerms(kind="slurm", asks=DoorTerms(kind="slurm")), first=dispatcher)
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
    await Elements(world.db, world.index).refresh()
    ((job_id, epoch),) = await world.match(who)
    given_back = Unfit(job_id=job_id, epoch=epoch, text="the node does not do: other.GPUNumber >= 1 is false")
    await world.report(who, unfit=(given_back,), slots=1, free_memory_mb=500)
    await provisioning.provide()
    assert len(await site.pilots()) == 3, "and it does not"
    (row,) = await world.sql("select unfit, free_memory_mb from pilot where pilot_id = $1", name)
    assert len(row["unfit"]) == 1
    assert row["free_memory_mb"] == 500


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


class FakeTaker(LocalDispatcher):
    """Stands for a batch system that takes pilots, and shows what it was told of them."""

    taken: tuple[PilotRequest, ...] = ()

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        self.taken += tuple(orders)
        return [PilotSighting(pilot_id=each.pilot_id, state="Submitted") for each in orders]


async def test_a_batch_system_is_told_what_the_jobs_require_that_a_pilot_is_sent_for(site: Site) -> None:
    taker = site.dispatcher(FakeTaker, "first", ENDS)
    assert isinstance(taker, FakeTaker)
    terms = EndpointTerms(
        kind="slurm", lifetime_seconds=86_400, asks=DoorTerms(kind="slurm", walltime_seconds=90_000)
    )
    provisioning, _ = site.build(terms, first=taker)
    await site.advertise("first")
    await site.world.submitted(cpu_time=400)
    await provisioning.provide()
    (order,) = taker.taken
    assert order.policy == JobPolicy(
        vo="lhcb", owner_groups=("physics",), cores=1, cpu_seconds=500, walltime_seconds=90_000
    )
