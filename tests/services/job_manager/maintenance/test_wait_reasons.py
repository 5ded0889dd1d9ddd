"""The reasons why queues wait: kept, and told when they change."""

import pytest

from tests.services.job_manager.queries.explained import advertise, expire, line_of, run_pilot, why
from tests.services.placing import brokered, placed
from tests.services.world import World, user
from wms.matching.closures import Closures
from wms.matching.grouping import Requirements
from wms.messages.queries import ShowJob


async def test_a_reason_is_kept_with_its_queue_and_told_when_it_changes(the_world: World) -> None:
    first, second = await the_world.submitted(2, memory_mb=8_000)
    (fact,) = await the_world.look()
    assert (fact.code, fact.waiting, fact.owner, fact.vo) == ("IMPOSSIBLE_NOW", 2, "ann", "lhcb")
    assert [(await line_of(the_world, each)).reason for each in (first, second)] == ["IMPOSSIBLE_NOW"] * 2
    detail = await the_world.ask(user(), ShowJob(query_id="q", job_id=first))
    assert (detail.job.reason, detail.reason_text) == ("IMPOSSIBLE_NOW", fact.text)
    assert await the_world.look() == [], "nothing has changed"
    await advertise(the_world)
    assert [each.code for each in await the_world.look()] == ["NEVER_POSSIBLE"]
    await advertise(the_world, "large", memory_mb=16_000)
    assert [each.code for each in await the_world.look()] == ["NO_PILOT"]
    assert (await line_of(the_world, first)).reason == "NO_PILOT"


async def test_what_waits_no_more_has_no_reason(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.look()
    await the_world.order("kill", job_id)
    assert (await line_of(the_world, job_id)).reason == "KILLED_BY_USER"
    assert await the_world.look() == []
    assert await the_world.sql("select 1 from wait_reason") == []


async def test_queues_that_are_served_are_not_told_of_all_the_time(the_world: World) -> None:
    await the_world.submitted(9)
    await advertise(the_world)
    await run_pilot(the_world, busy=4)
    assert [each.code for each in await the_world.look()] == ["SLOTS_BUSY"]
    await run_pilot(the_world, busy=0)
    assert await the_world.look() == []
    await the_world.sql("update wait_reason set since = since - interval '1 min'")
    assert [each.code for each in await the_world.look()] == ["SOON"]
    await expire(the_world)
    assert [each.code for each in await the_world.look()] == ["IMPOSSIBLE_NOW"], "graver news go at once"


async def test_a_queue_whose_turn_never_comes_is_behind_others(the_world: World) -> None:
    """The highest CPU segment goes first: while it has jobs, the others get nothing."""
    await the_world.submitted(50, cpu_time=200_000)
    (short,) = await the_world.submitted(cpu_time=100)
    await advertise(the_world)
    await run_pilot(the_world, busy=2)
    assert sorted(each.code for each in await the_world.look()) == ["BEHIND_OTHERS", "SOON"]
    said = await why(the_world, short)
    assert said.code == "BEHIND_OTHERS"
    assert (await line_of(the_world, short)).reason == "BEHIND_OTHERS"


async def test_without_a_matcher_that_says_how_queues_do_reasons_stay(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.look()
    await the_world.sql("update queue_watch set at = now() - interval '1 min'")
    await advertise(the_world)
    await the_world._reasons.look()
    assert (await line_of(the_world, job_id)).reason == "IMPOSSIBLE_NOW"


async def test_queues_come_and_go_and_come_again(the_world: World) -> None:
    """What is numbered in memory is begun anew when most of it is gone, and says the same as before."""
    for n in range(4):
        (job_id,) = await the_world.submitted(memory_mb=n + 1)
        assert [each.code for each in await the_world.look()] == ["IMPOSSIBLE_NOW"]
        await the_world.order("kill", job_id)
    assert len(the_world._reasons._numbers) == 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("services.job_manager.maintenance.wait_reasons.DEAD_QUEUES", 0)
        await the_world.submitted(memory_mb=3)
        assert [each.code for each in await the_world.look()] == ["IMPOSSIBLE_NOW"]
        assert len(the_world._reasons._numbers) == 1


async def test_a_queue_that_cannot_be_numbered_leaves_every_other_with_its_reason(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await the_world.submitted(cpu_time=60)
    (bad,) = await the_world.submitted(cpu_time=50_000)
    await the_world.submitted(cpu_time=60, sites=["A"])
    append = Closures.append

    def append_or_fail(self: Closures, requirements: Requirements) -> None:
        append(self, requirements)
        if requirements.cpu_segment > 10_000:
            raise OverflowError("a number of this queue")

    monkeypatch.setattr(Closures, "append", append_or_fail)
    for _ in range(2):
        await the_world.look()
        told = await the_world.sql("select r.code, j.job_id from job j join wait_reason r using (tq_id)")
        assert sorted(each["code"] for each in told) == ["IMPOSSIBLE_NOW", "IMPOSSIBLE_NOW"]
        assert bad not in {each["job_id"] for each in told}
        await the_world.submitted(cpu_time=50_001)


async def test_a_placed_job_waits_for_the_pilot_of_its_placement(the_world: World) -> None:
    job_id = await brokered(the_world)
    assert await the_world.look() == [], "it does not wait yet"
    await placed(the_world, job_id)
    (said,) = await the_world.look()
    assert (said.code, said.owner, said.waiting) == ("PLACED", "ann", 1)
    assert await the_world.look() == []


async def test_requirements_that_take_long_keep_no_queue_from_its_reason(
    the_world: World,
) -> None:
    await advertise(the_world)
    text = 'regexp(".*.*[xy]", strcat("{}{:03}", string(other.CPUTime), "x"))'
    for n in range(60):
        await the_world.submitted(requirements=text.format("a" * 600, n))
    await the_world.submitted(memory_mb=8_000, requirements="other.CPUTime > 7")
    rounds = [[each.code for each in await the_world.look()] for _ in range(8)]
    assert "NEVER_POSSIBLE" in rounds[0]
    assert len(rounds[0]) < 40
    assert sum(map(len, rounds)) == 61
