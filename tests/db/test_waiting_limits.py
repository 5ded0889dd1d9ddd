"""Room under limits on waiting jobs: locked, counted, used up, and unknown once jobs return."""

import asyncio
from datetime import UTC, datetime

from tests.services.world import World, user
from tests.waiting import eventually
from wms.db import waiting_limits
from wms.db.database import Database
from wms.db.waiting_limits import WaitingRoom, Whose
from wms.ids import TaskQueueId

ANN: Whose = ("owner", "ann")
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


async def test_a_room_is_unknown_until_it_is_counted(db: Database) -> None:
    async with db.transaction() as tx:
        locked = await waiting_limits.lock(tx, [ANN, ("vo", "lhcb")])
        assert locked.rooms == {ANN: WaitingRoom(0, NEVER), ("vo", "lhcb"): WaitingRoom(0, NEVER)}
        await waiting_limits.settle(tx, {ANN: WaitingRoom(7, locked.at)})
    async with db.transaction() as tx:
        assert (await waiting_limits.lock(tx, [ANN])).rooms == {ANN: WaitingRoom(7, locked.at)}


async def test_who_wants_a_room_waits_until_it_is_settled(db: Database) -> None:
    begun: list[bool] = []

    async def second() -> int:
        async with db.transaction() as tx:
            begun.append(True)
            return (await waiting_limits.lock(tx, [ANN])).rooms[ANN].left

    async with db.transaction() as tx:
        locked = await waiting_limits.lock(tx, [ANN])
        task = asyncio.create_task(second())
        await eventually(lambda: begun)
        await waiting_limits.settle(tx, {ANN: WaitingRoom(3, locked.at)})
        assert not task.done()
    assert await task == 3


async def test_jobs_that_return_make_the_rooms_of_their_owners_unknown(the_world: World) -> None:
    (mine,) = await the_world.submitted()
    await the_world.submit({}, who=user("bob", group="top", vo="cms"))
    queue = TaskQueueId((await the_world.job(mine))["tq_id"])
    rooms: list[Whose] = [ANN, ("owner_group", "physics"), ("vo", "lhcb"), ("owner", "bob"), ("vo", "cms")]
    async with the_world.db.transaction() as tx:
        locked = await waiting_limits.lock(tx, rooms)
        await waiting_limits.settle(tx, dict.fromkeys(rooms, WaitingRoom(9, locked.at)))
        await waiting_limits.forget(tx, [queue, queue])
        found = (await waiting_limits.lock(tx, rooms)).rooms
    assert {whose for whose, room in found.items() if room.counted_at == NEVER} == set(rooms[:3])
    assert {found[whose].left for whose in rooms[3:]} == {9}


async def test_jobs_that_wait_are_counted_with_rows_and_in_blocks(the_world: World) -> None:
    (job_id, _) = await the_world.submitted(2)
    await the_world.order("hold", job_id)
    ids = await the_world.swept(100)
    await the_world.order("hold", *ids[:10])
    await the_world.submit({"array": 7}, who=user("bob", group="physics"))
    await the_world.submit({}, who=user("eve", group="top"))
    async with the_world.db.transaction() as tx:
        counted = {
            whose: await waiting_limits.waiting(tx, whose)
            for whose in (ANN, ("owner", "bob"), ("owner_group", "physics"), ("vo", "lhcb"), ("vo", "cms"))
        }
    assert list(counted.values()) == [91, 7, 98, 99, 0]
