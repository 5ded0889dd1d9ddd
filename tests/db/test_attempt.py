"""Attempts and leases: accepted, begun and ended, and what is told of them afterwards."""

from typing import Any

import pytest

from tests.services.world import World, pilot, result
from wms.db import attempt
from wms.db.attempt import AttemptEnd
from wms.ids import AttemptId, Epoch, JobId, PilotId
from wms.job.reasons import Code
from wms.messages.reports import Usage


async def offered(the_world: World, count: int = 1, who: Any = None) -> list[AttemptId]:
    await the_world.submitted(count)
    return await the_world.match(who, count)


def end(held: AttemptId, outcome: Any = "done", code: Code = Code.DONE, **more: Any) -> AttemptEnd:
    return AttemptEnd(job_id=held.job_id, epoch=held.epoch, outcome=outcome, reason=code, **more)


async def leases(the_world: World) -> dict[int, Any]:
    rows = await the_world.sql(
        "select *, extract(epoch from expires_at - now())::float8 as left_seconds from lease order by job_id"
    )
    return {row["job_id"]: row for row in rows}


async def test_an_offer_that_is_accepted_is_a_lease_and_is_renewed(the_world: World) -> None:
    (held,) = await offered(the_world)
    async with the_world.db.transaction() as tx:
        await attempt.accept(tx, [held.job_id], 50.0)
        await attempt.accept(tx, [], 50.0)
    first = (await leases(the_world))[held.job_id]
    assert (first["phase"], first["accepted_at"] is not None) == ("accepted", True)
    assert first["left_seconds"] == pytest.approx(50, abs=5)
    async with the_world.db.transaction() as tx:
        await attempt.accept(tx, [held.job_id], 500.0)
    renewed = (await leases(the_world))[held.job_id]
    assert renewed["accepted_at"] == first["accepted_at"]
    assert renewed["left_seconds"] == pytest.approx(500, abs=5)


async def test_an_end_is_written_with_what_its_lease_told(the_world: World) -> None:
    one, two = await offered(the_world, 2)
    usage = Usage(cpu_user_seconds=3.0, wall_seconds=9.0, max_rss_bytes=7)
    async with the_world.db.transaction() as tx:
        await attempt.accept(tx, [one.job_id, two.job_id], 50.0)
        await attempt.note_started(tx, {one.job_id: 4})
        await attempt.note_started(tx, {})
        await attempt.finish(
            tx,
            [
                end(two, "lost", Code.PILOT_DIED, text="gone", accepted=True),
                end(one, "failed", Code.EXIT_CODE, exit_code=3, usage=usage, stdout_tail="last words"),
            ],
        )
        await attempt.finish(tx, [])
    assert await leases(the_world) == {}
    (first,) = await the_world.attempts(one.job_id)
    assert (first["outcome"], first["reason"], first["exit_code"], first["stdout_tail"]) == (
        "failed", "EXIT_CODE", 3, "last words",
    )  # fmt: skip
    assert (first["cpu_user_seconds"], first["wall_seconds"], first["max_rss_bytes"]) == (3.0, 9.0, 7)
    assert first["started_at"] is not None
    (second,) = await the_world.attempts(two.job_id)
    assert (second["outcome"], second["reason_text"], second["started_at"]) == ("lost", "gone", None)
    assert (second["cpu_user_seconds"], second["exit_code"]) == (0, None)


async def test_an_end_of_another_epoch_ends_nothing(the_world: World) -> None:
    (held,) = await offered(the_world)
    async with the_world.db.transaction() as tx:
        await attempt.finish(tx, [end(AttemptId(held.job_id, Epoch(held.epoch + 1)))])
    assert set(await leases(the_world)) == {held.job_id}
    rows = await the_world.sql("select from ended_attempt")
    assert rows == []


async def test_an_offer_that_was_withdrawn_was_never_taken(the_world: World) -> None:
    (held,) = await offered(the_world)
    async with the_world.db.transaction() as tx:
        await attempt.finish(tx, [end(held, "withdrawn", Code.OFFER_EXPIRED, accepted=True)])
    (found,) = await the_world.attempts(held.job_id)
    assert (found["accepted_at"], found["started_at"]) == (None, None)


async def test_a_report_is_known_by_its_attempt_and_its_pilot(the_world: World) -> None:
    done, lost, expired = await the_world.running(3)
    await the_world.report(finish=(result(done), result(lost, "lost", Code.AGENT_ERROR)))
    await the_world.expire(expired.job_id)
    mine = PilotId("p-1")
    async with the_world.db.transaction() as tx:
        asked = [(each.job_id, each.epoch, mine) for each in (done, lost, expired)]
        assert await attempt.recorded(tx, asked) == {done, lost}, "of the other nobody reported an end"
        assert await attempt.recorded(tx, [(done.job_id, done.epoch, PilotId("p-2"))]) == set()
        assert await attempt.recorded(tx, [(done.job_id, Epoch(9), mine)]) == set()
        assert await attempt.recorded(tx, []) == set()


async def test_leases_that_ran_out_are_found_oldest_first(the_world: World) -> None:
    held = await the_world.running(3)
    for n, each in enumerate(held[:2]):
        await the_world.sql(
            "update lease set expires_at = now() - make_interval(secs => $2) where job_id = $1",
            each.job_id,
            1.0 + n,
        )
    async with the_world.db.transaction() as tx:
        assert await attempt.expired(tx, 10) == [held[1].job_id, held[0].job_id]
        assert await attempt.expired(tx, 1) == [held[1].job_id]


@pytest.mark.parametrize("step", [3_600.0, -3_600.0])
async def test_leases_end_when_they_would_have_had_nobody_set_the_clock(
    the_world: World, step: float
) -> None:
    (held,) = await the_world.running()
    before = (await leases(the_world))[held.job_id]["left_seconds"]
    await the_world.sql("update lease set expires_at = expires_at - make_interval(secs => $1)", step)
    async with the_world.db.transaction() as tx:
        for _ in range(2):  # however many say so
            await attempt.clock_set(tx, step, 300.0)
    assert (await leases(the_world))[held.job_id]["left_seconds"] == pytest.approx(before, abs=5)


async def test_the_jobs_of_pilots_are_those_that_they_hold(the_world: World) -> None:
    (mine,) = await the_world.running(1, pilot("p-1"))
    (theirs,) = await the_world.running(1, pilot("p-2"))
    async with the_world.db.transaction() as tx:
        found: list[JobId] = await attempt.of_pilots(tx, [PilotId("p-1"), PilotId("p-2"), PilotId("p-3")])
        assert found == [mine.job_id, theirs.job_id]
        assert await attempt.of_pilots(tx, [PilotId("p-2")]) == [theirs.job_id]
