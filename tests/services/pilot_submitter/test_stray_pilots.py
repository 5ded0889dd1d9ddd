"""Pilots that an element lists though they should be gone: cancelled once nobody counts on them, and again until they are gone."""

import os
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointSettings
from services.pilot_submitter.pilot_tracking import GIVEN_UP_SECONDS, PilotTracking
from services.pilot_submitter.stray_pilots import CANCEL_PAUSE_SECONDS, LOOK_SECONDS, StrayPilots
from tests.services.world import World
from tests.waiting import eventually
from wms.db import pilot
from wms.db.pilot import NewPilot
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import PilotRequest
from wms.errors import Unavailable
from wms.ids import CeId, PilotId

STAYS = ["/bin/sh", "-c", "exec sleep 600"]
ENDED = "update pilot set state = 'Done', ended_at = now() - make_interval(secs => $1), cause = $2"


class FakeForgetful(LocalDispatcher):
    """Stands for a batch system that loses the first words that it is told, and answers nothing while it is `away`."""

    deaf = 0
    away = False
    told = 0

    async def alive(self) -> list[PilotId]:
        if self.away:
            raise Unavailable("no route")
        return await super().alive()

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        self.told += 1
        if self.told > self.deaf:
            await super().cancel(pilot_ids)


class Site:
    """One element whose pilots are real processes, and what looks after them."""

    def __init__(self, world: World, place: Path) -> None:
        self.world = world
        self.now = 1_000.0
        self.dispatcher = FakeForgetful(place / "pilots", STAYS, {"PATH": os.environ["PATH"]})
        self.other = LocalDispatcher(place / "other", STAYS, {"PATH": os.environ["PATH"]})
        self.endpoint = CeEndpoint(
            CeId("A", "ce"), self.dispatcher, lambda: self.now, EndpointSettings(kind="slurm")
        )
        self.endpoints = CeEndpoints(self.other, lambda: self.now, [self.endpoint])
        self.clearing = StrayPilots(world.db, self.endpoints)
        self.following = PilotTracking(world.db, self.endpoints)

    async def mark(self) -> str:
        async with self.world.db.transaction() as tx:
            return await pilot.mark(tx)

    async def start(self, name: str, *, known: bool = True) -> PilotId:
        pilot_id = PilotId(name)
        if known:
            sent = NewPilot(pilot_id=pilot_id, site="A", ce="ce", vo="lhcb", dispatcher="slurm", slots=1)
            async with self.world.db.transaction() as tx:
                await pilot.insert(tx, [sent])
        order = PilotRequest(pilot_id=pilot_id, site="A", ce="ce", slots=1, config="", token="t")
        await self.dispatcher.send([order])
        return pilot_id

    async def clear(self, after: float = 0.0) -> list[PilotId]:
        """Look once more after so many seconds; return what the element was told to end so far."""
        self.now += after
        before = self.dispatcher.told
        await self.clearing.clear()
        return await self.dispatcher.alive() if self.dispatcher.told == before else []

    async def gone(self) -> bool:
        return not await self.dispatcher.alive()


@pytest.fixture
async def site(the_world: World, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(the_world, tmp_path)
    yield made
    await LocalDispatcher.cancel(made.dispatcher, await LocalDispatcher.alive(made.dispatcher))


@pytest.mark.parametrize("cause", [None, "PILOT_DIED", "NODE_LOST", "PILOT_FORGOTTEN"])
async def test_a_pilot_whose_time_is_over_and_that_does_not_go_is_cancelled(
    site: Site, cause: str | None
) -> None:
    name = await site.start("p-1")
    assert await site.clear() == [name], "it is alive"
    await site.world.sql(ENDED, 60.0, cause)
    assert await site.clear(LOOK_SECONDS) == [name], "it may be about to go"
    await site.world.sql(ENDED, 180.0, cause)
    assert await site.clear(LOOK_SECONDS) == []
    await eventually(site.gone)


async def test_a_pilot_that_was_lost_from_sight_is_left_alone_while_it_holds_a_lease(site: Site) -> None:
    world = site.world
    (held,) = await world.running()
    assert await site.start("p-1", known=False) == "p-1", "the one that runs the job"
    await world.sql(ENDED, 3_600.0, "NODE_LOST")
    assert await site.clear() == ["p-1"], "it may work on, under its lease"
    await world.expire(held[0])
    assert await site.clear(LOOK_SECONDS) == []
    await eventually(site.gone)


async def test_it_is_cancelled_again_in_growing_pauses_until_the_element_lists_it_no_more(site: Site) -> None:
    await site.start("p-1")
    await site.world.sql(ENDED, 180.0, None)
    site.dispatcher.deaf = 3
    times = []
    while site.dispatcher.told <= site.dispatcher.deaf:
        before = site.dispatcher.told
        await site.clearing.clear()
        times += [site.now] * (site.dispatcher.told - before)
        site.now += 1.0
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == sorted(pauses)
    assert pauses[0] <= CANCEL_PAUSE_SECONDS < pauses[-1] <= 600
    await eventually(site.gone)
    for _ in range(3):
        await site.clear(1_000.0)
    assert site.dispatcher.told == 4, "the element agrees that it is gone"


async def test_what_bears_our_mark_and_nobody_knows_is_cancelled_and_others_are_left_alone(
    site: Site,
) -> None:
    ours = await site.start(pilot.new_id(await site.mark()), known=False)
    others = await site.start(pilot.new_id("0" * 8), known=False)
    nobodys = await site.start("sleep", known=False)
    await site.clear()
    assert await site.dispatcher.alive() != [], "it may be an error of a moment"
    await site.clear(180.0)

    async def left() -> bool:
        return set(await site.dispatcher.alive()) == {others, nobodys}

    await eventually(left)
    assert ours not in await site.dispatcher.alive()
    told = site.dispatcher.told
    await site.clear(1_000.0)
    assert site.dispatcher.told == told


async def test_an_element_that_is_away_is_asked_again(site: Site) -> None:
    await site.start("p-1")
    await site.world.sql(ENDED, 180.0, None)
    site.dispatcher.away = True
    await site.clearing.clear()
    assert site.dispatcher.told == 0
    site.dispatcher.away = False
    await site.clear(1_000.0)
    await eventually(site.gone)


async def test_a_pilot_that_is_listed_as_running_and_says_nothing_is_lost_from_sight_and_cancelled(
    site: Site,
) -> None:
    await site.start("p-1")
    await site.following.follow()
    heard = "update pilot set seen_at = now() - make_interval(secs => $1)"
    await site.world.sql(heard, GIVEN_UP_SECONDS - 60)
    await site.following.follow()
    assert [dict(row) for row in await site.world.sql("select state from pilot")] == [{"state": "Running"}]
    await site.world.sql(heard, GIVEN_UP_SECONDS + 60)
    await site.following.follow()
    (row,) = await site.world.sql("select state, cause, reason from pilot")
    assert (row["state"], row["cause"]) == ("Failed", "NODE_LOST")
    assert "not heard of for 1,260 s" in row["reason"]
    await site.world.sql("update pilot set ended_at = now() - interval '3 min'")
    await site.clear()
    await eventually(site.gone)


async def test_a_pilot_that_never_spoke_is_given_up_by_when_it_began_to_run(site: Site) -> None:
    await site.start("p-1")
    await site.following.follow()
    await site.world.sql(
        "update pilot set word_at = now() - make_interval(secs => $1)", GIVEN_UP_SECONDS + 60
    )
    await site.following.follow()
    (row,) = await site.world.sql("select state, cause from pilot")
    assert (row["state"], row["cause"]) == ("Failed", "NODE_LOST")
