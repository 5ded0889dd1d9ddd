"""Storing submissions: ids follow each other, arrays are one block, and jobs that are to wait are held."""

import msgspec

from tests.services.world import World, user
from wms.ids import CommandId
from wms.messages.commands import Submit


def submit(command_id: str, *jobs: dict[str, object], hold: bool = False) -> Submit:
    raw = tuple(msgspec.Raw(msgspec.json.encode({"executable": "/bin/true", **each})) for each in jobs)
    return Submit(command_id=CommandId(command_id), jobs=raw, hold=hold)


async def test_submissions_of_one_batch_have_ids_that_follow_each_other(the_world: World) -> None:
    await the_world.command(
        user(), submit("a", {}, {"array": 10}, {}), submit("b", {"array": 5}), submit("c", {})
    )
    rows = await the_world.sql("select command_id, ids from submission order by command_id")
    (a,), (b,), (c,) = (msgspec.json.decode(row["ids"]) for row in rows)
    assert [high - low + 1 for low, high in (a, b, c)] == [12, 5, 1]
    assert (b[0], c[0]) == (a[1] + 1, b[1] + 1)


async def test_single_jobs_have_rows_and_an_array_has_one_block(the_world: World) -> None:
    await the_world.command(user(), submit("a", {"name": "one"}, {"name": "many", "array": 10}))
    (one,) = await the_world.sql("select job_id, name, state from job")
    assert (one["name"], one["state"]) == ("one", "Waiting")
    (block,) = await the_world.sql("select first, last, state from block")
    first = one["job_id"] + 1
    assert tuple(block) == (first, first + 9, "Waiting")


async def test_jobs_with_equal_requirements_share_a_queue_whatever_submission_they_came_in(
    the_world: World,
) -> None:
    await the_world.command(user(), submit("a", {}, {"platforms": ["x"]}), submit("b", {"name": "x"}))
    queues = await the_world.sql("select tq_id, count(*) as jobs from job group by tq_id order by jobs")
    assert [row["jobs"] for row in queues] == [1, 2]


async def test_of_a_batch_the_submissions_that_say_so_are_held(the_world: World) -> None:
    await the_world.command(user(), submit("a", {"name": "held"}, hold=True), submit("b", {"name": "free"}))
    rows = await the_world.sql("select name, state from job")
    assert {row["name"]: row["state"] for row in rows} == {"held": "Held", "free": "Waiting"}


async def test_jobs_that_start_after_others_are_held_until_then(the_world: World) -> None:
    (before,) = await the_world.submitted()
    await the_world.command(user(), submit("a", {"name": "after", "after": [str(before)]}, {"name": "now"}))
    rows = await the_world.sql("select name, state from job where job_id <> $1", before)
    assert {row["name"]: row["state"] for row in rows} == {"after": "Held", "now": "Waiting"}
