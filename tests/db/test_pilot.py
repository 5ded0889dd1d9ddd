"""Pilots: written down before they are sent, seen, lost, back again, and ended once."""

from typing import Any

import asyncpg
import pytest

from tests.services.world import World, pilot
from wms.db import pilot as pilots
from wms.db import read_model
from wms.db.database import Database, Transaction
from wms.db.pilot import LAST_BREATH_SECONDS, Followed, NewPilot, PilotReport
from wms.ids import PilotId
from wms.job.reasons import Code
from wms.site import Resource

ONE, TWO = PilotId("p-1"), PilotId("p-2")


async def send(tx: Transaction, *names: PilotId, token_seconds: float | None = None, **more: Any) -> None:
    given: dict[str, Any] = {"site": "A", "ce": "ce", "vo": "v", "dispatcher": "local", "slots": 8} | more
    await pilots.insert(tx, [NewPilot(pilot_id=name, **given) for name in names], token_seconds)


async def speak(
    tx: Transaction, name: PilotId = ONE, state: str = "running", busy: int = 0, **more: Any
) -> None:
    given: dict[str, Any] = {"slots": 8, "done": 0, "reason": ""} | more
    await pilots.seen(tx, [PilotReport(pilot_id=name, state=state, busy=busy, **given)])


async def follow(tx: Transaction, state: str, name: PilotId = ONE, **more: Any) -> None:
    await pilots.update(tx, [Followed(pilot_id=name, state=state, **more)])


async def shown(tx: Transaction, name: PilotId = ONE) -> asyncpg.Record:
    row = await pilots.one(tx, name)
    assert row is not None
    return row


async def passes(tx: Transaction, seconds: float) -> None:
    await tx.execute(
        "update pilot set seen_at = seen_at - i.n, started_at = started_at - i.n, ended_at = ended_at - i.n, word_at = word_at - i.n"
        " from make_interval(secs => $1) as i(n)",
        seconds,
    )


async def test_a_pilot_that_speaks_runs_with_as_many_slots_as_it_was_sent_with(tx: Transaction) -> None:
    await send(tx, ONE)
    assert (await shown(tx))["state"] == "Submitting"
    await speak(tx, slots=64, busy=3, done=2)
    await speak(tx, slots=4, done=5)
    found = await shown(tx)
    assert (found["state"], found["slots"], found["busy"], found["jobs_done"]) == ("Running", 4, 0, 7)
    await speak(tx, state="draining")
    assert (await shown(tx))["state"] == "Draining"
    await speak(tx, state="ended", reason="told to")
    found = await shown(tx)
    assert (found["state"], found["reason"], found["ended_at"] is None) == ("Done", "told to", False)


async def test_what_an_element_says_late_takes_a_pilot_that_spoke_back_to_no_queue(tx: Transaction) -> None:
    await send(tx, ONE)
    await follow(tx, "Submitted", reference="job 7")
    await follow(tx, "Waiting", reason="priority")
    assert ((await shown(tx))["state"], (await shown(tx))["reference"]) == ("Waiting", "job 7")
    await speak(tx)
    await follow(tx, "Waiting")
    assert (await shown(tx))["state"] == "Running"
    await follow(tx, "Failed", reason="node", cause=Code.PILOT_DIED)
    await follow(tx, "Running")
    assert (await shown(tx))["state"] == "Failed", "one that has ended stays ended"


@pytest.mark.parametrize(("cause", "back"), [(Code.NODE_LOST, True), (Code.PILOT_DIED, False), (None, False)])
async def test_a_pilot_that_was_only_lost_from_sight_is_back_when_it_speaks(
    tx: Transaction, cause: Code | None, *, back: bool
) -> None:
    await send(tx, ONE)
    await speak(tx)
    await follow(tx, "Failed", cause=cause)
    assert await pilots.alive(tx) == []
    await speak(tx, busy=1)
    assert [each.pilot_id for each in await pilots.alive(tx)] == ([ONE] if back else [])
    allowance = (await pilots.standings(tx, [ONE]))[ONE]
    assert allowance.ended != back


async def test_a_pilot_that_we_cancelled_counts_against_no_element(tx: Transaction) -> None:
    """Some batch systems forget deleted jobs at once: they then know no such pilot."""
    await send(tx, ONE, TWO)
    for name in (ONE, TWO):
        await follow(tx, "Waiting", name)
    await pilots.cancelled(tx, [ONE])
    assert [(each.pilot_id, each.cancelled) for each in await pilots.alive(tx)] == [(ONE, True), (TWO, False)]
    for name in (ONE, TWO):
        await follow(tx, "Aborted", name, reason="PBS knows no such job", cause=Code.PILOT_FORGOTTEN)
    assert (await shown(tx))["reason"] == "we cancelled it: PBS knows no such job"
    (losses,) = (await read_model.losses(tx)).values()
    assert (losses.ended, losses.lost) == (1, 1), "the other alone"


async def test_pilots_that_offer_the_same_are_one_supply(tx: Transaction) -> None:
    offers = Resource(setup="s", vo="v", cpu_time=60)
    await send(tx, *(PilotId(f"p-{n}") for n in range(1, 5)), resource=offers, lifetime_seconds=1_000.0)
    await speak(tx, ONE)
    await speak(tx, TWO, busy=2)
    found = await pilots.supply(tx, [100, 900, 2_000], idle_silent=60, busy_silent=60)
    assert [(each.state, each.busy, each.pilots, each.worked, each.lasts) for each in found] == [
        ("Running", 0, 1, 0, 2),
        ("Running", 2, 1, 1, 2),
        ("Submitting", 0, 2, 0, 3),
    ]
    await passes(tx, 200)
    found = await pilots.supply(tx, [100, 900, 2_000], idle_silent=60, busy_silent=600)
    assert [(each.busy, each.lasts, each.silent) for each in found[:2]] == [(0, 1, True), (2, 1, False)]


async def test_pilots_with_free_slots_are_counted_by_their_nodes(tx: Transaction) -> None:
    await send(tx, ONE, TWO)
    await speak(tx, ONE, node='[["gpunumber",0]]')
    await speak(tx, ONE)
    await speak(tx, TWO, busy=8, node='[["gpunumber",2]]')
    found = await pilots.supply(tx, [], idle_silent=60, busy_silent=60)
    assert [(each.busy, each.idle_node) for each in found] == [(0, '[["gpunumber",0]]'), (8, "")]


async def test_private_pilots_are_counted_by_whose_jobs_they_take(tx: Transaction) -> None:
    await send(tx, PilotId("a"), PilotId("b"), owner_group="g", owner="ann")
    await send(tx, PilotId("c"), owner_group="g")
    await send(tx, PilotId("d"))
    await follow(tx, "Done", PilotId("b"))
    assert await pilots.private(tx) == {("v", "g", "ann"): 1, ("v", "g", ""): 1}


async def test_tokens_are_renewed_for_those_that_run_first_and_not_again_at_once(tx: Transaction) -> None:
    await send(tx, ONE, TWO, token_seconds=100)
    await send(tx, PilotId("long"), token_seconds=10_000)
    await speak(tx, TWO)
    due = await pilots.tokens_due(tx, within=600, pause=60, limit=10)
    assert [each.pilot_id for each in due] == [TWO, ONE]
    await pilots.tokens_sent(tx, [TWO])
    await pilots.tokens_sent(tx, [])
    assert [each.pilot_id for each in await pilots.tokens_due(tx, within=600, pause=60, limit=10)] == [ONE]
    assert await pilots.tokens_due(tx, within=600, pause=60, limit=0) == []


async def test_what_a_dead_pilot_holds_is_given_back_soon(the_world: World) -> None:
    (mine,) = await the_world.running(1, pilot("p-1"))
    (theirs,) = await the_world.running(1, pilot("p-2"))
    async with the_world.db.transaction() as tx:
        await pilots.hurry_leases(tx, [ONE])
        await pilots.hurry_leases(tx, [])
        rows = await tx.fetch(
            "select job_id, extract(epoch from expires_at - now())::float8 as left from lease"
        )
    left = {row["job_id"]: row["left"] for row in rows}
    assert left[mine.job_id] == pytest.approx(LAST_BREATH_SECONDS, abs=1)
    assert left[theirs.job_id] > 2 * LAST_BREATH_SECONDS


async def test_a_pilot_may_still_be_given_what_its_slots_and_leases_leave(the_world: World) -> None:
    await the_world.submitted(3)
    held = await the_world.match(pilot("p-1"), 3)
    await the_world.report(pilot("p-1"), accept=tuple(held[:1]))
    async with the_world.db.transaction() as tx:
        found = await pilots.standings(tx, [ONE, PilotId("nobody")])
        of_all = await pilots.standings(tx, None)
    assert set(found) == set(of_all) == {ONE}
    assert (found[ONE].slots, found[ONE].leases, found[ONE].offered, found[ONE].ended) == (8, 3, 2, False)


async def test_pilots_whose_output_nobody_asked_for_are_found_after_their_end(tx: Transaction) -> None:
    await send(tx, ONE, TWO)
    await follow(tx, "Done", ONE)
    await follow(tx, "Failed", TWO, cause=Code.NODE_LOST)
    assert await pilots.unfetched(tx, within=600, since=10, limit=9) == [], "it may still be written"
    await passes(tx, 60)
    found = await pilots.unfetched(tx, within=600, since=10, limit=9)
    assert sorted((each.pilot_id, each.lost) for each in found) == [(ONE, False), (TWO, True)]
    await pilots.keep_outputs(tx, {ONE: "a\0b", TWO: ""})
    await pilots.keep_outputs(tx, {})
    assert (await shown(tx))["output"] == "ab"
    assert await pilots.unfetched(tx, within=600, since=10, limit=9) == []


async def test_what_should_be_gone_is_what_ended_or_nobody_knows_of_and_holds_nothing(
    the_world: World,
) -> None:
    await the_world.running(1, pilot("p-1"))
    async with the_world.db.transaction() as tx:
        await send(tx, TWO, PilotId("lives"))
        for name in (ONE, TWO):
            await follow(tx, "Done", name)
        found = await pilots.over(tx, [ONE, TWO, PilotId("lives"), PilotId("stranger")])
    assert [(each.pilot_id, each.site, each.age is None) for each in found] == [
        (TWO, "A", False),
        ("stranger", "", True),
    ]


async def test_names_of_pilots_bear_the_systems_mark(tx: Transaction) -> None:
    mark = await pilots.mark(tx)
    names = {pilots.new_id(mark) for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith(pilots.prefix(mark)) for name in names)


async def test_pilots_are_listed_those_that_live_first_and_of_one_vo(tx: Transaction) -> None:
    await send(tx, ONE)
    await send(tx, TWO, vo="w")
    await follow(tx, "Done")
    assert [row["pilot_id"] for row in await pilots.listed(tx, 0, 9, vo=None, ended=True)] == [TWO, ONE]
    assert [row["pilot_id"] for row in await pilots.listed(tx, 0, 9, vo=None, ended=False)] == [TWO]
    assert [row["pilot_id"] for row in await pilots.listed(tx, 0, 9, vo="v", ended=True)] == [ONE]
    assert [row["pilot_id"] for row in await pilots.listed(tx, 1, 9, vo=None, ended=True)] == [ONE]


async def test_what_became_of_pilots_is_known_until_they_are_forgotten(tx: Transaction) -> None:
    await send(tx, ONE, TWO)
    await follow(tx, "Failed", ONE, reason="node went", cause=Code.PILOT_DIED)
    fates = await pilots.fates(tx, [ONE, TWO, PilotId("nobody")])
    assert {name: (each.ended, each.word, each.cause) for name, each in fates.items()} == {
        ONE: (True, "Failed: node went", "PILOT_DIED"),
        TWO: (False, None, None),
    }
    assert await pilots.fates(tx, []) == {}
    await passes(tx, 9_000)
    assert await pilots.forget(tx, 3_600, 9) == 1
    assert await pilots.one(tx, ONE) is None
    assert await pilots.forget(tx, 3_600, 9) == 0


async def test_one_plans_at_a_time(db: Database) -> None:
    async with db.transaction() as one, db.transaction() as other:
        assert await pilots.may_plan(one)
        assert not await pilots.may_plan(other)
