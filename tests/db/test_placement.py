"""Placements: taken once, marked by the state table alone, and listed."""

import asyncpg
import pytest

from tests.services.placing import brokered, placed, placements
from tests.services.world import World, user
from wms.broker.placement import PlacementEvent, PlacementState
from wms.db import placement
from wms.db.placement import PlacementMark
from wms.ids import CeId, PilotId

PILOT = """insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, job_id) values ($1, 'A', 'ce', 'lhcb', 'local', 1, $2)"""
AGREEMENT = """insert into agreement (agreement_id, job_id, vo, owner, "group", site, ce, cpus, duration_seconds, flexible,
    expires_in_seconds, state, expires_at) values ('a-1', $1, 'lhcb', 'ann', 'physics', 'A', 'ce', 1, 900, true, 60, 'Requested', now())"""


async def test_an_ordered_placement_is_taken_once_and_again_after_its_deadline(the_world: World) -> None:
    job_id = await brokered(the_world)
    await placed(the_world, job_id, reservation="r1")
    async with the_world.db.transaction() as tx:
        (taken,) = await placement.take(tx, "s-1", 30.0, 10)
        assert (taken.job_id, taken.attempt, taken.reservation) == (job_id, 1, "r1")
        assert await placement.take(tx, "s-2", 30.0, 10) == []
        await tx.execute("update placement set taken_until = now() - interval '1 s'")
        assert [each.job_id for each in await placement.take(tx, "s-2", 30.0, 10)] == [job_id]
        await placement.assign(tx, {(job_id, 1): PilotId("p-1")})
        await tx.execute("update placement set taken_until = now() - interval '1 s'")
        assert await placement.take(tx, "s-3", 30.0, 10) == [], "its pilot was stored"


async def test_owners_take_turns_and_an_element_gets_no_more_than_its_bound(the_world: World) -> None:
    """One owner's many placements are older than the one of another; two pilots may be there."""
    many = await the_world.submitted(5, dispatch="pilot")
    ((one, _),) = (await the_world.submit({"dispatch": "pilot"}, who=user("bob"))).ids
    reserved = await brokered(the_world)
    for job_id in (*many, one):
        await placed(the_world, job_id)
    await the_world.sql(AGREEMENT, reserved)
    await placed(the_world, reserved, agreement_id="a-1")
    place = CeId("A", "ce")
    async with the_world.db.transaction() as tx:
        taken = await placement.take(tx, "s-1", 30.0, 10, most={place: 2})
        assert {each.job_id for each in taken} == {many[0], one, reserved}
        for each in taken:
            name = PilotId(f"p-{each.job_id}")
            await tx.execute(PILOT, name, each.job_id)
            await placement.assign(tx, {(each.job_id, 1): name})
        assert await placement.take(tx, "s-1", 30.0, 10, most={place: 2}) == []
        await tx.execute("update pilot set state = 'Done', ended_at = now() where job_id = $1", one)
        (next_one,) = await placement.take(tx, "s-1", 30.0, 10, most={place: 2})
        assert next_one.job_id == many[1]
        assert len(await placement.take(tx, "s-1", 30.0, 10)) == 3, "an element with a queue of its own"


async def test_a_slot_that_is_freed_goes_to_the_owner_with_fewer_pilots(the_world: World) -> None:
    """Each round has one slot to give, and the oldest placements are one owner's."""
    many = await the_world.submitted(4, dispatch="pilot")
    ((one, _),) = (await the_world.submit({"dispatch": "pilot"}, who=user("bob"))).ids
    for job_id in (*many, one):
        await placed(the_world, job_id)
    order = []
    async with the_world.db.transaction() as tx:
        for most in range(1, 4):
            (taken,) = await placement.take(tx, "s-1", 30.0, 10, most={CeId("A", "ce"): most})
            name = PilotId(f"p-{taken.job_id}")
            await tx.execute(PILOT, name, taken.job_id)
            await placement.assign(tx, {(taken.job_id, 1): name})
            order.append(taken.job_id)
    assert order == [many[0], one, many[1]]


async def test_marks_move_only_by_the_state_table(the_world: World) -> None:
    job_id = await brokered(the_world)
    await placed(the_world, job_id)
    mark = PlacementMark(job_id=job_id, attempt=1, reason="REFUSED", text="no")
    async with the_world.db.transaction() as tx:
        assert await placement.mark(tx, PlacementEvent.END, PlacementState.ENDED, [mark]) == []
        assert await placement.mark(tx, PlacementEvent.FAIL, PlacementState.FAILED, [mark]) == [(job_id, 1)]
        assert await placement.mark(tx, PlacementEvent.SEND, PlacementState.SENT, [mark]) == []
    (one,) = await placements(the_world, job_id)
    assert (one.state, one.reason, one.reason_text) == (PlacementState.FAILED, "REFUSED", "no")
    assert not one.is_open


async def test_a_job_has_one_open_placement(the_world: World) -> None:
    job_id = await brokered(the_world)
    await placed(the_world, job_id)
    with pytest.raises(asyncpg.UniqueViolationError):
        await the_world.sql(
            "insert into placement (job_id, attempt, rank, site, ce, dispatch) values ($1, 2, 1, 'B', 'ce', 'pilot')",
            job_id,
        )


async def test_the_states_are_those_of_the_table(database: str) -> None:
    connection = await asyncpg.connect(database)
    text = await connection.fetchval(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'placement_state'"
    )
    await connection.close()
    assert {state for state in PlacementState if f"'{state}'" in text} == set(PlacementState)
