"""Job records: adopted once a move, claimed by one at a time, and finished by who has them."""

from tests.services.world import World, user
from wms.db import instance, job_record
from wms.db.instance import Beat
from wms.db.job_record import StepResult
from wms.ids import InstanceId, JobId


async def adopted(world: World) -> JobId:
    (job_id,) = await world.submitted(preferences={})
    async with world.db.transaction() as tx:
        await job_record.adopt(tx, await job_record.unknown(tx, 10))
    return job_id


async def test_an_order_is_adopted_once_and_a_later_one_begins_anew(the_world: World) -> None:
    job_id = await adopted(the_world)
    async with the_world.db.transaction() as tx:
        found = await job_record.of_job(tx, job_id)
        assert found is not None
        assert await job_record.unknown(tx, 10) == {}
        (claimed,) = await job_record.claim(tx, "b-1", 30.0, 10)
        await job_record.finish(tx, [StepResult(job_id=job_id, phase="Placed", round=1, asked=("a", "b"))])
        await job_record.adopt(tx, {job_id: claimed.seq})
        same = await job_record.of_job(tx, job_id)
        assert same is not None
        assert (same.phase, same.asked, same.round) == ("Placed", ("a", "b"), 1)
        await job_record.adopt(tx, {job_id: claimed.seq + 1})
        anew = await job_record.of_job(tx, job_id)
        assert anew is not None
        assert (anew.phase, anew.asked) == ("Choosing", ("a", "b"))


async def test_one_broker_has_a_record_until_its_deadline(the_world: World) -> None:
    job_id = await adopted(the_world)
    async with the_world.db.transaction() as tx:
        (first,) = await job_record.claim(tx, "b-1", 30.0, 10)
        assert (first.job_id, first.tries, first.is_checking) == (job_id, 1, True)
        assert await job_record.claim(tx, "b-2", 30.0, 10) == []
        await tx.execute("update job_record set claimed_until = now() - interval '1 s'")
        (second,) = await job_record.claim(tx, "b-2", 30.0, 10)
        assert second.tries == 2
        assert await job_record.hold(tx, [job_id], "b-1") == set()
        assert await job_record.hold(tx, [job_id], "b-2") == {job_id}


async def test_a_record_of_a_broker_that_sends_no_heartbeats_is_free_at_once(the_world: World) -> None:
    job_id = await adopted(the_world)
    async with the_world.db.transaction() as tx:
        await job_record.claim(tx, "b-1", 30.0, 10)
        beat = Beat(
            instance_id=InstanceId("b-1"),
            service="s",
            consumers=(),
            host="h",
            pid=1,
            version="0",
            health="{}",
        )
        await instance.beat(tx, beat)
        assert await job_record.claim(tx, "b-2", 30.0, 10) == []
        await tx.execute("update service_instance set heartbeat_at = now() - interval '6 s'")
        assert [each.job_id for each in await job_record.claim(tx, "b-2", 30.0, 10)] == [job_id]
        assert await job_record.hold(tx, [job_id], "b-1") == set()


async def test_a_finished_step_is_due_later_unless_it_is_hastened(the_world: World) -> None:
    job_id = await adopted(the_world)
    async with the_world.db.transaction() as tx:
        await job_record.claim(tx, "b-1", 30.0, 10)
        later = StepResult(job_id=job_id, phase="Choosing", seconds=60.0, round=0, reason="X", text="why")
        await job_record.finish(tx, [later])
        assert await job_record.claim(tx, "b-1", 30.0, 10) == []
        await job_record.hasten(tx, [job_id])
        (claimed,) = await job_record.claim(tx, "b-1", 30.0, 10)
        assert claimed.tries == 1
        assert [row["phase"] for row in await tx.fetch("select phase from job_record")] == ["Choosing"]


async def test_a_record_goes_with_its_job(the_world: World) -> None:
    await adopted(the_world)
    await the_world.sql("delete from job")
    assert await the_world.sql("select * from job_record") == []


async def test_owners_take_turns(the_world: World) -> None:
    """One owner's many jobs are due before the one of another: both are begun."""
    many = await the_world.submitted(30, preferences={})
    ((one, _),) = (await the_world.submit({"preferences": {}}, who=user("bob"))).ids
    async with the_world.db.transaction() as tx:
        await job_record.adopt(tx, await job_record.unknown(tx, 100))
        await tx.execute("update job_record set due_at = now() - interval '1 h' where job_id <> $1", one)
        claimed = {each.job_id for each in await job_record.claim(tx, "b-1", 30.0, 10)}
        assert one in claimed
        assert len(claimed & set(many)) == 9
        rest = [each.job_id for each in await job_record.claim(tx, "b-2", 30.0, 100)]
        assert sorted(rest) == sorted(set(many) - claimed)
