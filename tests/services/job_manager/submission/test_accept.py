"""Submissions: taken whole or not at all, and stored each with its own."""

from typing import Any

import msgspec
import pytest

from tests.services.job_manager.test_sweeps import blocks
from tests.services.world import World
from wms.jobdesc import JobDescription
from wms.messages import replies


async def test_a_submission_is_taken_whole_or_not_at_all(the_world: World) -> None:
    reply = await the_world.submit({}, {"cpu_time": -1}, {"prioritty": 3})
    assert isinstance(reply, replies.Refused)
    assert any("jobs[1].cpu_time" in each for each in reply.details)
    assert any("jobs[2]" in each for each in reply.details)
    assert not await the_world.sql("select from job")


def _as_tools_write_it(**fields: Any) -> dict[str, Any]:
    """Return the fields in their order: what is encoded so may be known at a glance."""
    written: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(msgspec.convert(fields, JobDescription))
    )
    return written


async def test_jobs_of_one_kind_are_stored_each_with_its_own(the_world: World) -> None:
    """The first of a kind is read whole, the others at a glance, within one submission and from one to the next."""
    kind = {"executable": "bin/sim", "cpu_time": 60, "sites": ["A"], "max_attempts": 5}
    own: list[dict[str, Any]] = [
        {"arguments": ["1"], "name": "first", "priority": 3},
        {"arguments": ['"2"', "x"], "environment": {"SEED": "2"}},
        {"environment": {"SEED": "3"}, "name": "third", "priority": 10},
        {"arguments": ["\u00e9"], "name": "fourth"},
    ]
    expected = [_as_tools_write_it(**kind, **each) for each in (*own, *reversed(own))]
    await the_world.submit(*expected[:4])
    await the_world.submit(*expected[4:], _as_tools_write_it(**kind, array=7, priority=3))
    rows = await the_world.sql(
        "select job_id, name, user_priority, max_attempts, tq_id, body from job join description using (description_id)"
    )
    rows.sort(key=lambda row: row["job_id"])
    assert [msgspec.json.decode(row["body"]) for row in rows] == expected
    assert [(row["name"], row["user_priority"]) for row in rows] == [
        (each.get("name", "sim"), each.get("priority", 1)) for each in expected
    ]
    assert {(row["max_attempts"], row["tq_id"]) for row in rows} == {(5, rows[0]["tq_id"])}
    (sweep,) = await the_world.sql("select first, last, tq_id, user_priority from sweep")
    assert tuple(sweep) == (9, 15, rows[0]["tq_id"], 3)


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ({"arguments": ["\x00"]}, "jobs[1].arguments"),
        ({"environment": {"WMS_A": "1"}}, "jobs[1].environment"),
        ({"priority": 11}, "jobs[1].priority"),
        ({"name": "x" * 256}, "jobs[1].name"),
        ({"arguments": ["x" * 40_000]}, "jobs[1].arguments"),
    ],
)
async def test_a_bad_job_of_a_good_kind_is_named(the_world: World, bad: dict[str, Any], place: str) -> None:
    kind = {"executable": "sim", "arguments": ["1"], "environment": {"A": "1"}}
    await the_world.submitted(2, **kind)
    wrong = dict(
        sorted({**kind, **bad}.items(), key=lambda item: JobDescription.__struct_fields__.index(item[0]))
    )
    reply = await the_world.submit(kind, wrong, kind)
    assert isinstance(reply, replies.Refused)
    assert [each.partition(" ")[0].startswith(place) for each in reply.details] == [True]
    assert len(await the_world.sql("select from job")) == 2


async def test_a_sweep_taken_twice_is_there_once(the_world: World) -> None:
    first = await the_world.submit({"array": 1_000}, command_id="same")
    second = await the_world.submit({"array": 1_000}, command_id="same")
    assert second.repeated
    assert second.ids == first.ids
    assert len(await blocks(the_world)) == 1


async def test_a_sweep_of_a_thousand_million_is_refused_at_once(the_world: World) -> None:
    reply = await the_world.submit({"array": 10**9})
    assert isinstance(reply, replies.Refused)
    assert "1,000,000" in str(reply)
    assert await blocks(the_world) == []
