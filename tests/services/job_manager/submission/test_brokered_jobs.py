"""Jobs that the broker is to place: from their submission to their placement, and what users order meanwhile."""

from typing import Any

import pytest

from services.job_manager.submission import brokered_jobs
from tests.services.placing import (
    BROKERED,
    bound,
    brokered,
    placed,
    placements,
    told_broker,
)
from tests.services.world import World, result
from wms.audit import audit
from wms.db import placement, task_queue
from wms.db.placement import NewPlacement
from wms.messages import broker, replies


@pytest.fixture(autouse=True)
async def _audited(the_world: World) -> Any:
    """Whatever a test did, the auditor finds nothing."""
    yield
    report = await audit(the_world.url)
    assert report.ok, report.text(brief=True)


async def test_a_brokered_job_is_checking_and_the_broker_is_asked(the_world: World) -> None:
    job_id = await brokered(the_world)
    assert await the_world.history(job_id) == ["Received", "Waiting", "Checking"]
    (asked,) = told_broker(the_world)
    assert isinstance(asked, broker.BrokerJob)
    assert (asked.job_id, asked.seq, asked.owner, asked.vo) == (job_id, 3, "ann", "lhcb")
    assert await the_world.match() == [], "no pilot takes it"


async def test_others_of_the_submission_wait_as_ever(the_world: World) -> None:
    reply = await the_world.submit({}, BROKERED, {})
    first = reply.ids[0][0]
    states = [await the_world.state(first + n) for n in range(3)]
    assert states == ["Waiting", "Checking", "Waiting"]


async def test_an_array_is_brokered_job_by_job(the_world: World) -> None:
    ids = await the_world.swept(3, **BROKERED, arguments=["{n}"])
    assert [await the_world.state(each) for each in ids] == ["Checking"] * 3
    assert [each.job_id for each in told_broker(the_world)] == ids
    queues = {(await the_world.job(each))["tq_id"] for each in ids}
    assert len(queues) == 3
    assert await placed(the_world, ids[1]) == [ids[1]]
    assert [await the_world.state(each) for each in ids] == ["Checking", "Waiting", "Checking"]


async def test_each_has_a_queue_of_its_own(the_world: World) -> None:
    one, other = await brokered(the_world), await brokered(the_world)
    async with the_world.db.transaction() as tx:
        queues = [(await the_world.job(each))["tq_id"] for each in (one, other)]
        required = await task_queue.read(tx, queues)
    assert [required[each].tags for each in queues] == [(f"job:{one}",), (f"job:{other}",)]


async def test_a_placed_job_waits_and_no_usual_pilot_gets_it(the_world: World) -> None:
    job_id = await brokered(the_world)
    assert await placed(the_world, job_id, rank=2) == [job_id]
    assert await the_world.state(job_id) == "Waiting"
    (one,) = await placements(the_world, job_id)
    assert (one.attempt, one.rank, one.site, one.state) == (1, 2, "A", "Ordered")
    assert await the_world.match(tags=("any", f"job:{job_id}")) == []


async def test_only_a_brokered_job_in_checking_is_placed(the_world: World) -> None:
    (usual,) = await the_world.submitted()
    job_id = await brokered(the_world)
    await the_world.order("hold", job_id)
    assert await placed(the_world, usual) == []
    assert await placed(the_world, job_id) == []
    assert await placements(the_world, job_id) == []


async def test_a_second_placement_gives_up_no_first_one_that_waits(the_world: World) -> None:
    """The job is Waiting then, and the broker's late second thought is refused."""
    job_id = await brokered(the_world)
    await placed(the_world, job_id)
    assert await placed(the_world, job_id, site="B") == []
    assert [each.site for each in await placements(the_world, job_id)] == ["A"]


@pytest.mark.parametrize("action", ["kill", "remove"])
@pytest.mark.parametrize("times_placed", [0, 1])
async def test_an_order_ends_what_the_broker_has(the_world: World, action: Any, times_placed: int) -> None:
    job_id = await brokered(the_world)
    if times_placed:
        await placed(the_world, job_id)
    assert (await the_world.order(action, job_id)).changed == 1
    assert await the_world.state(job_id) == {"kill": "Killed", "remove": "Deleted"}[action]
    assert [each.state for each in await placements(the_world, job_id)] == ["Abandoned"] * times_placed


async def test_a_held_job_goes_to_the_broker_once_it_is_released(the_world: World) -> None:
    job_id = await brokered(the_world)
    assert (await the_world.order("hold", job_id)).changed == 1
    told_broker(the_world)
    await the_world.order("release", job_id)
    assert await the_world.state(job_id) == "Checking"
    (asked,) = told_broker(the_world)
    assert asked.seq == 6, "received, queued, checked, held, released, checked"


@pytest.mark.parametrize("times_placed", [0, 1])
async def test_a_rescheduled_job_is_placed_anew(the_world: World, times_placed: int) -> None:
    job_id = await brokered(the_world)
    if times_placed:
        await placed(the_world, job_id)
    await the_world.order("reschedule", job_id)
    assert await the_world.state(job_id) == "Checking"
    assert await placed(the_world, job_id, site="B") == [job_id]
    assert [each.site for each in await placements(the_world, job_id) if each.is_open] == ["B"]


async def test_an_edited_job_is_placed_anew_and_stays_its_pilots(the_world: World) -> None:
    job_id = await brokered(the_world)
    assert (await the_world.order("edit", job_id, memory_mb=2_000)).changed == 1
    assert await the_world.state(job_id) == "Checking"
    async with the_world.db.transaction() as tx:
        tq_id = (await the_world.job(job_id))["tq_id"]
        required = (await task_queue.read(tx, [tq_id]))[tq_id]
    assert (required.min_ram_mb, required.tags) == (2_000, (f"job:{job_id}",))


async def test_a_job_that_starts_after_another_goes_to_the_broker_then(the_world: World) -> None:
    (held,) = await the_world.running()
    job_id = await brokered(the_world, after=[held.job_id])
    assert await the_world.state(job_id) == "Held"
    assert told_broker(the_world) == []
    await the_world.report(finish=(result(held),))
    await the_world.settle()
    assert await the_world.state(job_id) == "Checking"
    assert [each.job_id for each in told_broker(the_world)] == [job_id]


async def test_too_many_are_refused(the_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokered_jobs, "BROKERED_LIMIT", 2)
    reply = await the_world.submit({**BROKERED, "array": 2}, BROKERED)
    assert isinstance(reply, replies.Refused)
    assert reply.code == "TOO_MANY_BROKERED"


async def test_several_are_placed_at_once(the_world: World) -> None:
    ids = [await brokered(the_world) for _ in range(3)]
    async with the_world.db.transaction() as tx:
        new = [NewPlacement(job_id=each, site="A", ce="ce", predicted={"total": 60}) for each in ids]
        assert await placement.order(tx, new, "resource_broker") == ids
        assert {each.attempt for each in (await placement.open_of(tx, ids)).values()} == {1}
    assert [(await placements(the_world, each))[0].predicted for each in ids] == [{"total": 60}] * 3


async def test_its_pilot_gets_it_and_nothing_else(the_world: World) -> None:
    """By the token: whatever the request says of tags."""
    job_id, other = await brokered(the_world), await brokered(the_world)
    await the_world.submitted(3)
    for each in (job_id, other):
        await placed(the_world, each)
    mine = await bound(the_world, job_id)
    claims: dict[str, Any] = {"tags": ("any", f"job:{other}"), "required_tags": ("any",)}
    held = await the_world.match(mine, slots=4, **claims)
    assert [each.job_id for each in held] == [job_id]
    await the_world.report(mine, accept=tuple(held), start=tuple(held), busy=1)
    (one,) = await placements(the_world, job_id)
    assert one.state == "Started"
    assert await the_world.match(mine, slots=4, **claims) == []
    await the_world.report(mine, finish=(result(held[0]),))
    (one,) = await placements(the_world, job_id)
    assert (one.state, one.reason) == ("Ended", "DONE")
