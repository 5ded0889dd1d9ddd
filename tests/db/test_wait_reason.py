"""Why queues wait: kept with each queue, and shown with the jobs that wait in it."""

import pytest

from tests.services.world import World, pilot
from wms.db import wait_reason
from wms.db.database import Database
from wms.db.wait_reason import QueueWaitReason
from wms.ids import JobId, TaskQueueId
from wms.job.wait_reason_codes import WaitCode


def why(
    tq_id: TaskQueueId, code: WaitCode = WaitCode.NO_PILOT, text: str = "none", chance: float = 0.5
) -> QueueWaitReason:
    return QueueWaitReason(tq_id=tq_id, code=code, text=text, chance=chance)


async def queue_of(the_world: World, job_id: JobId) -> TaskQueueId:
    return TaskQueueId((await the_world.job(job_id))["tq_id"])


async def test_a_reason_is_since_its_code_is_what_it_is(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    queue = await queue_of(the_world, job_id)
    async with the_world.db.transaction() as tx:
        await wait_reason.write(tx, [why(queue)])
        await tx.execute("update wait_reason set since = now() - interval '60 s'")
        await wait_reason.write(tx, [why(queue, text="other words", chance=0.25)])
        found = (await wait_reason.read(tx))[queue]
        assert (found.code, found.chance) == ("NO_PILOT", 0.25)
        assert found.age_seconds == pytest.approx(60, abs=0.1)
        await wait_reason.write(tx, [why(queue, WaitCode.SLOTS_BUSY)])
        assert (await wait_reason.read(tx))[queue].age_seconds == pytest.approx(0, abs=0.1)
        await wait_reason.write(tx, [])


async def test_jobs_that_wait_show_the_reason_of_their_queue(the_world: World) -> None:
    waiting, held = await the_world.submitted(2)
    swept = await the_world.swept(10)
    await the_world.order("hold", held, swept[0])
    async with the_world.db.transaction() as tx:
        queue = await queue_of(the_world, waiting)
        await wait_reason.write(tx, [why(queue, text="no pilot is there")])
        found = await wait_reason.of_jobs(tx, [waiting, held, *swept, JobId(10**6)])
    assert set(found) == {waiting, *swept[1:]}, "those that are held do not wait for a pilot"
    assert {(row["code"], row["text"]) for row in found.values()} == {("NO_PILOT", "no pilot is there")}


async def test_queues_in_which_nothing_waits_are_forgotten(the_world: World) -> None:
    (one,) = await the_world.submitted()
    (other,) = await the_world.submitted(memory_mb=7)
    first, second = await queue_of(the_world, one), await queue_of(the_world, other)
    async with the_world.db.transaction() as tx:
        await wait_reason.write(tx, [why(first), why(second)])
        await wait_reason.forget(tx, [first])
        await wait_reason.forget(tx, [])
        assert set(await wait_reason.read(tx)) == {second}
        assert await wait_reason.chance(tx, second) == 0.5
        assert await wait_reason.chance(tx, first) == 1.0, "nobody has looked"


async def test_pilots_are_counted_by_element_and_vo(the_world: World) -> None:
    for n, (state, busy, vo) in enumerate(
        (
            ("Running", 3, "lhcb"),
            ("Running", 9, "lhcb"),
            ("Submitted", 0, "lhcb"),
            ("Running", 0, "cms"),
            ("Done", 0, "lhcb"),
        )
    ):
        await the_world.add_pilot(pilot(f"p-{n}", vo=vo), slots=8)
        await the_world.sql(
            "update pilot set state = $2, busy = $3 where pilot_id = $1", f"p-{n}", state, busy
        )
    await the_world.sql("update pilot set ended_at = now() where state = 'Done'")
    async with the_world.db.transaction() as tx:
        found = await wait_reason.pilot_counts(tx)
    lhcb, cms = found["A", "ce", "lhcb"], found["A", "ce", "cms"]
    assert (lhcb.running, lhcb.coming, lhcb.slots, lhcb.free_slots) == (2, 1, 16, 5)
    assert (cms.running, cms.coming, cms.slots, cms.free_slots) == (1, 0, 8, 8)
    assert len(found) == 2


async def test_elements_are_known_for_a_while_after_they_expired(the_world: World) -> None:
    for ce, life in (("fresh", 60.0), ("gone", -60.0)):
        await the_world.sql(
            "insert into ad (site, ce, element, advertised_at, expires_at) values ('A', $1, $2::text::jsonb, now(),"
            " now() + make_interval(secs => $3))",
            ce, f'{{"site": "A", "ce": "{ce}", "slots": 1, "max_cpu_time": 60}}', life,
        )  # fmt: skip
    async with the_world.db.transaction() as tx:
        assert {each.element.ce: each.fresh for each in await wait_reason.known(tx)} == {
            "fresh": True,
            "gone": False,
        }


async def test_one_looks_at_a_time(db: Database) -> None:
    async with db.transaction() as one, db.transaction() as other:
        assert await wait_reason.may_look(one)
        assert not await wait_reason.may_look(other)
