"""Blocks: selected, cut and moved as one, and turned into rows when a pilot is about to have their jobs."""

from itertools import pairwise
from typing import Any

import asyncpg

from tests.services.world import World
from wms.auth.policy import Scope
from wms.db import block
from wms.db.block import FEW, JobFilter
from wms.db.database import Transaction
from wms.ids import JobId
from wms.job.state import State
from wms.messages.commands import Selector

ALL = Scope(reach="all")


def these(*ranges: tuple[int, int], **more: Any) -> JobFilter:
    return block.wanted(ALL, Selector(ids=ranges, **more))


async def blocks(tx: Transaction) -> list[asyncpg.Record]:
    return await tx.fetch("select first, last, state from block order by first")


async def test_a_filter_means_a_selector_within_a_range() -> None:
    found = block.wanted(ALL, Selector(ids=((1, 5), (4, 9), (20, 30)), owner="ann"), (5, 25))
    assert (found.ranges, found.owner) == (((5, 9), (20, 25)), "ann")
    assert block.wanted(ALL, Selector(everything=True)).ranges == (block.EVERYTHING,)
    assert block.size([(1, 5), (7, 7)]) == 6


async def test_a_part_that_moves_is_cut_out_of_its_block(the_world: World) -> None:
    ids = await the_world.swept(100)
    await the_world.order("hold", *ids[10:20], *ids[50:52])
    async with the_world.db.transaction() as tx:
        found = await blocks(tx)
    assert [(row["first"] - ids[0], row["last"] - ids[0], row["state"]) for row in found] == [
        (0, 9, "Waiting"), (10, 19, "Held"), (20, 49, "Waiting"), (50, 51, "Held"), (52, 99, "Waiting"),
    ]  # fmt: skip


async def test_blocks_are_selected_with_the_jobs_that_are_meant(the_world: World) -> None:
    ids = await the_world.swept(10, name="s-{n}")
    other = await the_world.swept(10, name="t")
    async with the_world.db.transaction() as tx:
        found = await block.select(tx, these((ids[3], other[4])), newest=False, limit=1_000)
        assert [ranges for _, ranges in found] == [[(ids[3], ids[9])], [(other[0], other[4])]]
        newest = await block.select(tx, these((ids[3], other[4])), newest=True, limit=1)
        assert [ranges for _, ranges in newest] == [[(other[0], other[4])]]
        named = await block.select(tx, these((1, 10**9), name="s-[36]"), newest=False, limit=10)
        assert named == [], "a pattern has no classes"
        named = await block.select(tx, these((1, 10**9), name="?-3"), newest=False, limit=10)
        assert [ranges for _, ranges in named] == [[(ids[3], ids[3])]]
        assert await block.count(tx, these((ids[3], other[4]))) == {("Waiting", "QUEUED"): 12}
        assert await block.count(tx, these((1, 10**9), name="s*")) == {("Waiting", "QUEUED"): 10}
        assert await block.select(tx, JobFilter(ranges=(), scope=ALL), newest=False, limit=9) == []


async def test_jobs_of_blocks_are_shown_as_if_they_had_rows(the_world: World) -> None:
    ids = await the_world.swept(3, name="s-{n}", job_group="g")
    (single,) = await the_world.submitted()
    async with the_world.db.transaction() as tx:
        found = await block.lines(tx, [ids[2], single, JobId(10**9)])
        (of,) = await block.of_jobs(tx, [ids[2], single])
    assert {job_id: (line["name"], line["state"], line["job_group"]) for job_id, line in found.items()} == {
        ids[2]: ("s-2", "Waiting", "g")
    }
    assert (of.first, of.last) == (ids[0], ids[2])


async def rows(tx: Transaction) -> list[int]:
    return [row["job_id"] for row in await tx.fetch("select job_id from job order by job_id")]


async def test_jobs_that_are_asked_for_get_rows_and_some_beside_them(the_world: World) -> None:
    ids = await the_world.swept(10_000, name="s-{n}", parameters={"p": [str(n) for n in range(10_000)]})
    async with the_world.db.transaction() as tx:
        assert await block.expand(tx, [ids[500]])
        made = await rows(tx)
        assert ids[500] in made
        assert len(made) == FEW
        row = await tx.fetchrow(
            "select name, parameters, array_index, state from job where job_id = $1", ids[500]
        )
        assert row is not None
        assert tuple(row) == ("s-500", '{"p": "500"}', 500, "Waiting")
        spans = [(each["first"], each["last"]) for each in await blocks(tx)]
        outside = [n for low, high in spans for n in range(low, high + 1)]
        assert sorted([*outside, *made]) == ids, "each job is in one place"
        assert all(high < low for (_, high), (low, _) in pairwise(spans))
        assert not await block.expand(tx, [JobId(made[0])]), "it has a row"
        assert not await block.expand(tx, [])


async def test_jobs_that_do_not_wait_get_no_rows(the_world: World) -> None:
    ids = await the_world.swept(10)
    await the_world.order("hold", *ids)
    async with the_world.db.transaction() as tx:
        assert not await block.expand(tx, [ids[3]])
        assert await rows(tx) == []


async def test_blocks_that_wait_are_told_by_queue_and_priority(the_world: World) -> None:
    ids = await the_world.swept(5, priority=3)
    held = await the_world.swept(5)
    await the_world.order("hold", *held)
    async with the_world.db.transaction() as tx:
        ((_, priority, span),) = await block.waiting(tx)
        assert (priority, tuple(span)) == (3.0, (ids[0], ids[4]))
        parts = await block.lock_selected(tx, these((held[1], held[2])))
        assert [(each.state, ranges) for each, ranges in parts] == [(State.HELD, [(held[1], held[2])])]
        await block.give_rows(tx, parts)
        assert await rows(tx) == held[1:3]
        assert await block.lock_selected(tx, these((10**8, 10**9))) == []
