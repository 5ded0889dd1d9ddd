"""What people look at: one job whole, queues, and sites with what runs there."""

import msgspec
import pytest

from tests.services.world import World, pilot, result, user
from wms.auth.policy import Scope
from wms.db import read_model
from wms.ids import CeId, JobId
from wms.job.reasons import Code

ALL = Scope(reach="all")


async def advertise(the_world: World, ce: str, life: float = 60.0) -> None:
    await the_world.sql(
        "insert into ad (site, ce, element, advertised_at, expires_at) values ('A', $1, $2::text::jsonb, now(),"
        " now() + make_interval(secs => $3))",
        ce, f'{{"site": "A", "ce": "{ce}", "slots": 4, "max_cpu_time": 60}}', life,
    )  # fmt: skip


@pytest.mark.parametrize("has_row", [True, False])
async def test_a_job_of_a_sweep_has_its_own_values_with_a_row_or_without(
    the_world: World, *, has_row: bool
) -> None:
    ids = await the_world.swept(5, parameters={"p": list("abcde")})
    await the_world.order("hold", ids[3])
    if has_row:
        await the_world.order("release", ids[3])
        await the_world.match(slots=5)
    async with the_world.db.transaction() as tx:
        index, values, body = await read_model.description(tx, ids[3])
        states = [row["state"] for row in await read_model.history(tx, ids[3])]
    assert (index, values) == (3, {"p": "d"})
    assert msgspec.json.decode(body)["array"] == 5
    assert states[:3] == ["Received", "Waiting", "Held"]


async def test_attempts_are_told_in_order_and_the_last_words_of_the_last(the_world: World) -> None:
    (first,) = await the_world.running()
    await the_world.expire(first.job_id)
    (again,) = await the_world.match(pilot("p-2"))
    await the_world.report(pilot("p-2"), accept=(again,), start=(again,))
    failed = result(again, "failed", Code.EXIT_CODE, exit_code=3, stdout_tail="out", stderr_tail="err")
    await the_world.report(pilot("p-2"), finish=(failed,))
    async with the_world.db.transaction() as tx:
        rows = await read_model.attempts(tx, first.job_id)
        assert [(row["epoch"], row["pilot_id"], row["outcome"], row["exit_code"]) for row in rows] == [
            (1, "p-1", "lost", None),
            (2, "p-2", "failed", 3),
        ]
        assert [each.text for each in await read_model.tails(tx, first.job_id)] == ["out", "err"]
        assert [each.text for each in await read_model.tails(tx, JobId(10**6))] == ["", ""]


@pytest.mark.parametrize("watched", [True, False])
async def test_queues_are_listed_fullest_first_whoever_counts(the_world: World, *, watched: bool) -> None:
    await the_world.submitted(2)
    await the_world.swept(10, memory_mb=5)
    await the_world.submit({}, who=user("bob", vo="cms"))
    await the_world.watch()
    async with the_world.db.transaction() as tx:
        rows = await read_model.queues(tx, ALL, 10, watched=watched)
        assert [(row["owner"], row["waiting"]) for row in rows] == [("ann", 10), ("ann", 2), ("bob", 1)]
        assert len(await read_model.queues(tx, ALL, 1, watched=watched)) == 1
        bobs = await read_model.queues(tx, Scope(reach="vo", vo="cms"), 10, watched=watched)
        assert [row["owner"] for row in bobs] == ["bob"]


async def test_elements_are_shown_with_their_pilots_and_what_runs_there(the_world: World) -> None:
    for ce in ("ce", "idle"):
        await advertise(the_world, ce)
    await advertise(the_world, "long gone", -2 * 86_400)
    await the_world.running(3)
    async with the_world.db.transaction() as tx:
        rows = await read_model.sites(tx, 0, 10)
        found = {
            row["ce"]: (row["fresh"], row["pilots"], row["running_jobs"], row["free_slots"]) for row in rows
        }
        assert found == {"ce": (True, 1, 3, 5), "idle": (True, 0, 0, 0)}
        assert [row["ce"] for row in await read_model.sites(tx, 1, 10)] == ["idle"]
        assert [row["ce"] for row in await read_model.sites(tx, 0, 10, "A", "ce")] == ["ce"]
        assert await read_model.sites(tx, 0, 10, "B") == []


async def test_places_are_those_in_memory_with_the_pilots_of_one_vo(the_world: World) -> None:
    await advertise(the_world, "ce")
    await advertise(the_world, "gone", -60)
    await the_world.running(3)
    await the_world.add_pilot(pilot("p-cms", vo="cms"))
    async with the_world.db.transaction() as tx:
        found = {
            known.element.ce: (known.fresh, pilots) for known, pilots in await read_model.places(tx, "lhcb")
        }
        others = {known.element.ce: pilots for known, pilots in await read_model.places(tx, "cms")}
    fresh, pilots = found["ce"]
    assert (fresh, pilots.running, pilots.coming, pilots.slots, pilots.free_slots) == (True, 1, 0, 8, 5)
    assert found["gone"][0] is False
    assert (others["ce"].running, others["ce"].coming) == (0, 1)


async def test_pilots_that_died_unseen_are_counted_of_those_that_ended(the_world: World) -> None:
    for n, (state, seen) in enumerate(
        (("Failed", False), ("Failed", True), ("Done", False), ("Aborted", False))
    ):
        await the_world.add_pilot(pilot(f"p-{n}"))
        await the_world.sql(
            "update pilot set state = $2, ended_at = now(), seen_at = case when $3 then now() end where pilot_id = $1",
            f"p-{n}", state, seen,
        )  # fmt: skip
    await the_world.add_pilot(pilot("p-old"))
    await the_world.sql(
        "update pilot set state = 'Failed', ended_at = now() - interval '2 h' where pilot_id = 'p-old'"
    )
    async with the_world.db.transaction() as tx:
        found = (await read_model.losses(tx))[CeId("A", "ce")]
    assert (found.ended, found.lost) == (4, 2)
