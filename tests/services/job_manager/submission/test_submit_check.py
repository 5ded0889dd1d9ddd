"""The submit check: what cannot run is warned of, or refused if the user says so."""

from tests.services.job_manager.queries.explained import advertise, expire, offered
from tests.services.world import World
from wms.messages import replies


async def test_a_submission_is_warned_of_what_cannot_run(the_world: World) -> None:
    await advertise(the_world)
    await advertise(the_world, "gone", tags=("gpu",))
    await expire(the_world, "gone")
    reply = await offered(
        the_world, {}, {"memory_mb": 9_000, "array": 5}, {"tags": ["gpu"]}, {"memory_mb": 9_000}
    )
    assert [(each.code, each.jobs) for each in reply.foreseen] == [
        ("NEVER_POSSIBLE", 6),
        ("IMPOSSIBLE_NOW", 1),
    ]
    assert reply.foreseen[0].relaxations[0].changes == ("memory 4000 MB instead of 9000",)
    assert "NEVER_POSSIBLE: 6 jobs can never run as they are" in reply.warnings[0]
    assert "memory 4000 MB instead of 9000 (4 slots at A) would do" in reply.warnings[0]
    assert reply.ids, "they are taken all the same"
    assert (await offered(the_world, {})).foreseen == ()


async def test_a_strict_submission_is_refused_whole(the_world: World) -> None:
    await advertise(the_world)
    reply = await offered(the_world, {}, {"memory_mb": 9_000}, strict=True)
    assert (reply.code, len(reply.details)) == ("CANNOT_RUN", 1)
    for table in ("job", "description", "submission", "task_queue"):
        assert not await the_world.sql(f"select 1 from {table}"), table
    assert (await offered(the_world, {}, strict=True)).ids


async def test_a_rehearsal_stores_nothing(the_world: World) -> None:
    reply = await offered(the_world, {"memory_mb": 9_000}, rehearsal=True)
    assert isinstance(reply, replies.Submitted)
    assert reply.ids == ()
    assert [each.code for each in reply.foreseen] == ["IMPOSSIBLE_NOW"]
    assert not await the_world.sql("select 1 from job")


async def test_what_is_foreseen_changes_with_the_ads(the_world: World) -> None:
    assert [each.code for each in (await offered(the_world, {})).foreseen] == ["IMPOSSIBLE_NOW"]
    await advertise(the_world)
    assert (await offered(the_world, {})).foreseen == ()
    await expire(the_world)
    assert [each.code for each in (await offered(the_world, {})).foreseen] == ["IMPOSSIBLE_NOW"]


async def test_requirements_are_judged_once_until_ads_change(the_world: World) -> None:
    await advertise(the_world)
    foresight = the_world._commands.submissions.foresight
    await offered(the_world, {"memory_mb": 9_000})
    (judged,) = foresight._obstacles.values()
    await advertise(the_world, load=3.5, current_jobs=4)
    await offered(the_world, *[{"memory_mb": 9_000}] * 5)
    assert next(iter(foresight._obstacles.values())) is judged, "what changes all the time is no news"
    await advertise(the_world, memory_mb=5_000)
    reply = await offered(the_world, {"memory_mb": 9_000})
    assert reply.foreseen[0].relaxations[0].changes == ("memory 5000 MB instead of 9000",)
