"""Selectors: which jobs are meant, with rows of their own or in blocks, of those in reach."""

from datetime import timedelta
from typing import Any

import pytest

from tests.services.world import World, user
from wms.auth.policy import Scope
from wms.db import selection
from wms.db.job_search import PageRequest
from wms.errors import Rejected
from wms.ids import JobId
from wms.job.state import State
from wms.messages.commands import Selector

ALL = Scope(reach="all")
ALICE = user("alice", vo="lhcb")


async def select(the_world: World, scope: Scope = ALL, limit: int = 1_000, **said: Any) -> list[JobId]:
    beside = {name: said.pop(name) for name in ("after", "newest", "alone") if name in said}
    async with the_world.db.transaction() as tx:
        return await selection.select(tx, scope, Selector(**said), PageRequest(limit=limit, **beside))


async def test_what_names_nothing_means_nothing(the_world: World) -> None:
    await the_world.submitted()
    assert selection.is_empty(Selector())
    assert await select(the_world) == []


async def test_rows_and_blocks_are_one_list_in_either_order(the_world: World) -> None:
    first = await the_world.submitted(2)
    swept = await the_world.swept(5)
    last = await the_world.submitted(2)
    every = [*first, *swept, *last]
    assert await select(the_world, everything=True) == every
    assert await select(the_world, everything=True, newest=True) == every[::-1]
    assert await select(the_world, everything=True, limit=4, after=every[1]) == every[2:6]
    assert await select(the_world, everything=True, limit=4, after=every[7], newest=True) == every[3:7][::-1]
    assert await select(the_world, everything=True, alone=True) == [*first, *last]


async def test_ranges_that_overlap_mean_each_job_once(the_world: World) -> None:
    ids = [*await the_world.submitted(3), *await the_world.swept(10)]
    ranges = ((ids[0], ids[5]), (ids[4], ids[8]), (ids[1], ids[1]))
    assert await select(the_world, ids=ranges) == ids[:9]


async def test_only_what_is_in_reach_is_meant(the_world: World) -> None:
    (mine,) = await the_world.submitted()
    reply = await the_world.submit({}, {"array": 3}, who=ALICE)
    hers = [JobId(n) for low, high in reply.ids for n in range(low, high + 1)]
    alices = Scope(reach="owner", owner="alice", group="physics", vo="lhcb")
    assert await select(the_world, alices, everything=True) == hers
    assert await select(the_world, alices, ids=((mine, hers[-1]),)) == hers
    assert await select(the_world, Scope(reach="vo", vo="cms"), everything=True) == []


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("sim*", {"sim_1", "simx1", "sim-0", "sim-1", "sim-2"}),
        ("sim_1", {"sim_1"}),
        ("sim?1", {"sim_1", "simx1", "sim-1"}),
        ("100%", {"100%"}),
        ("*-2", {"sim-2"}),
        ("sim", set()),
        ("back\\*", {"back\\slash"}),
    ],
)
async def test_a_pattern_of_names_means_what_it_says(the_world: World, pattern: str, names: set[str]) -> None:
    singles = ("sim_1", "simx1", "100%", "100x", "back\\slash")
    ids = {name: (await the_world.submitted(name=name))[0] for name in singles}
    swept = await the_world.swept(3, name="sim-{n}")
    ids |= {f"sim-{n}": each for n, each in enumerate(swept)}
    expected = sorted(ids[name] for name in names)
    assert await select(the_world, name=pattern) == expected


async def test_parts_of_a_selector_hold_together(the_world: World) -> None:
    held, waiting = await the_world.submitted(2, job_group="g")
    swept = await the_world.swept(4, job_group="g")
    await the_world.submitted(job_group="h")
    await the_world.order("hold", held, *swept[:2])
    assert await select(the_world, job_group="g", states=(State.HELD,)) == [held, *swept[:2]]
    assert await select(the_world, job_group="g", states=(State.WAITING,), ids=((held, swept[2]),)) == [
        waiting,
        swept[2],
    ]


async def test_jobs_are_meant_by_where_they_run_and_when_they_changed(the_world: World) -> None:
    (running,) = await the_world.running()
    (waiting,) = await the_world.submitted()
    swept = await the_world.swept(2)
    assert await select(the_world, site="A") == [running.job_id]
    assert await select(the_world, site="B") == []
    async with the_world.db.transaction() as tx:
        now = await tx.now()
    await the_world.sql("update job set changed_at = changed_at - interval '1 d' where job_id = $1", waiting)
    since = now - timedelta(hours=1)
    assert await select(the_world, changed_since=since) == [running.job_id, *swept]


async def test_a_submission_means_the_jobs_that_it_made(the_world: World) -> None:
    reply = await the_world.submit({}, {"array": 3}, command_id="mine/0")
    ids = [n for low, high in reply.ids for n in range(low, high + 1)]
    await the_world.submitted()
    async with the_world.db.transaction() as tx:
        found = await selection.of_submission(tx, "ann", Selector(submission="mine"))
        assert (found.submission, found.ids) == (None, ((ids[0], ids[-1]),))
        some = await selection.of_submission(tx, "ann", Selector(submission="mine", ids=((ids[1], 10**6),)))
        assert some.ids == ((ids[1], ids[-1]),)
        none = await selection.of_submission(tx, "ann", Selector(submission="mine", ids=((10**6, 10**7),)))
        assert await selection.select(tx, ALL, none, PageRequest(limit=10)) == [], "and not all jobs"
        with pytest.raises(Rejected, match="made no submission"):
            await selection.of_submission(tx, "bob", Selector(submission="mine"))
        plain = Selector(name="x")
        assert await selection.of_submission(tx, "bob", plain) is plain


async def test_lines_are_in_the_order_asked_for(the_world: World) -> None:
    (single,) = await the_world.submitted(name="one")
    swept = await the_world.swept(3, name="s{n}")
    async with the_world.db.transaction() as tx:
        found = await selection.lines(tx, [swept[2], single, JobId(10**6), swept[0]])
    assert [(row["job_id"], row["name"]) for row in found] == [
        (swept[2], "s2"),
        (single, "one"),
        (swept[0], "s0"),
    ]
