"""Counts in pieces: along one index each, and together each job once."""

import itertools
import math
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from tests.services.world import World, user
from wms.auth.policy import Scope
from wms.db import job_count
from wms.db.job_count import CountPiece
from wms.db.job_search import HIGHEST
from wms.ids import JobId
from wms.job.state import State
from wms.messages.commands import Selector

ALL = Scope(reach="all")
ANN = Scope(reach="owner", owner="ann", group="physics", vo="lhcb")


async def count(the_world: World, scope: Scope = ALL, **said: Any) -> dict[str, int]:
    """Return the numbers by state, of one piece that has the time."""
    async with the_world.db.transaction() as tx:
        piece = await job_count.count(tx, scope, Selector(**said), seconds=math.inf, step=1_000)
    assert piece.counted_from is None
    return by_state([piece])


def by_state(pieces: list[CountPiece]) -> dict[str, int]:
    found = Counter[str]()
    for (state, _), jobs in itertools.chain.from_iterable(each.jobs.items() for each in pieces):
        found[state] += jobs
    return dict(found)


async def in_pieces(the_world: World, scope: Scope, step: int, **said: Any) -> list[CountPiece]:
    found: list[CountPiece] = []
    while not found or found[-1].counted_from is not None:
        below = found[-1].counted_from if found else None
        async with the_world.db.transaction() as tx:
            found.append(await job_count.count(tx, scope, Selector(**said), below, seconds=0.0, step=step))
        assert len(found) < 100, "the pieces do not end"
    return found


@pytest.mark.parametrize("scope", [ANN, ALL], ids=["owner", "all"])
async def test_pieces_count_together_what_one_counts(the_world: World, scope: Scope) -> None:
    running = sorted(each.job_id for each in await the_world.running(count=3, name="run"))
    swept = await the_world.swept(5, job_group="g")
    held, killed, *waiting = await the_world.submitted(6, job_group="g", name="sim")
    await the_world.order("hold", held, swept[0])
    await the_world.order("kill", killed)
    every = {"Running": 3, "Waiting": 8, "Held": 2, "Killed": 1}
    for said, counts in (
        ({"everything": True}, every),
        ({"states": (State.HELD,)}, {"Held": 2}),
        ({"states": (State.RUNNING,)}, {"Running": 3}),
        ({"states": (State.WAITING,)}, {"Waiting": 8}),
        ({"states": (State.WAITING, State.RUNNING, State.HELD)}, {"Running": 3, "Waiting": 8, "Held": 2}),
        ({"site": "A"}, {"Running": 3}),
        ({"job_group": "g"}, {"Waiting": 8, "Held": 2, "Killed": 1}),
        ({"job_group": "g", "states": (State.WAITING,)}, {"Waiting": 8}),
        ({"name": "run"}, {"Running": 3}),
        ({"name": "none"}, {}),
        ({"ids": ((1, 10**9),)}, every),
        (
            {"ids": ((running[1], swept[1]), (killed, waiting[1]))},
            {"Running": 2, "Held": 1, "Waiting": 3, "Killed": 1},
        ),
        ({"ids": ((1, 10**9),), "states": (State.KILLED,)}, {"Killed": 1}),
    ):
        assert await count(the_world, scope, **said) == counts, said
        for step in (1, 3):
            assert by_state(await in_pieces(the_world, scope, step, **said)) == counts, (said, step)


async def test_a_piece_says_where_the_next_one_goes_on(the_world: World) -> None:
    ids = await the_world.submitted(5)
    found = await in_pieces(the_world, ANN, 2, everything=True)
    assert [each.counted_from for each in found] == [ids[3], ids[1], None]


async def test_a_piece_goes_on_while_there_is_time(the_world: World) -> None:
    await the_world.submitted(5)
    async with the_world.db.transaction() as tx:
        found = await job_count.count(tx, ANN, Selector(everything=True), seconds=math.inf, step=2)
    assert found == CountPiece({("Waiting", "QUEUED"): 5}, 5)


async def test_what_names_nothing_counts_nothing(the_world: World) -> None:
    await the_world.submitted()
    assert await count(the_world) == {}


async def test_ranges_that_overlap_count_each_job_once(the_world: World) -> None:
    ids = [*await the_world.submitted(3), *await the_world.swept(10)]
    ranges = ((ids[0], ids[5]), (ids[4], ids[8]), (ids[1], ids[1]))
    assert await count(the_world, ids=ranges) == {"Waiting": 9}


async def test_only_what_is_in_reach_is_counted(the_world: World) -> None:
    (mine,) = await the_world.submitted()
    reply = await the_world.submit({}, {"array": 3}, who=user("alice", vo="lhcb"))
    alices = Scope(reach="owner", owner="alice", group="physics", vo="lhcb")
    assert await count(the_world, alices, ids=((mine, reply.ids[-1][1]),)) == {"Waiting": 4}
    assert await count(the_world, ALL, owner="alice") == {"Waiting": 4}
    assert await count(the_world, Scope(reach="vo", vo="cms"), everything=True) == {}


async def test_jobs_are_counted_by_when_they_changed(the_world: World) -> None:
    old, _ = await the_world.submitted(2)
    async with the_world.db.transaction() as tx:
        now = await tx.now()
    await the_world.sql("update job set changed_at = changed_at - interval '1 d' where job_id = $1", old)
    assert await count(the_world, changed_since=now - timedelta(hours=1)) == {"Waiting": 1}


INDEX_OF = {
    "ids": "job_pkey",
    "all": "job_pkey",
    "owner": "job_by_owner",
    "group": "job_by_group",
    "rare state": "job_by_rare_state_of_all",
    "rare state of owner": "job_by_rare_state",
    "leases": "lease_pkey",
}


@pytest.mark.parametrize("name", INDEX_OF)
async def test_each_index_is_scanned_in_its_own_order(the_world: World, name: str) -> None:
    ids = await the_world.submitted(200, job_group="g")
    await the_world.order("hold", *ids[50:])
    await the_world.sql("analyze job")
    ranges = ([ids[100], ids[0]], [ids[150], ids[50]])
    values = [5, HIGHEST, name, "ann", "Held", *ranges, *[None] * 6, "g", None, None]
    async with the_world.db.transaction() as tx:
        await tx.execute("set local enable_seqscan = off")
        plan = "\n".join(
            row[0] for row in await tx.fetch("explain analyze " + job_count.SQL["next_rows"], *values)
        )
    scans = [line for line in plan.splitlines() if "Index" in line and "never executed" not in line]
    assert any(f"Backward using {INDEX_OF[name]} on" in line for line in scans), plan
    assert not any("Seq Scan on job" in line for line in plan.splitlines()), plan


async def test_ranges_are_read_no_further_than_a_step(the_world: World) -> None:
    ids = await the_world.submitted(50)
    values = [3, HIGHEST, "ids", None, None, [ids[30], ids[0]], [ids[40], ids[20]], *[None] * 9]
    async with the_world.db.transaction() as tx:
        rows = await tx.fetch(job_count.SQL["next_rows"], *values)
    assert [(row["jobs"], row["lowest"]) for row in rows] == [(3, JobId(ids[38]))]
