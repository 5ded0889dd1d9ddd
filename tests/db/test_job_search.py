"""Searches of job rows: each job is found along one index, and a search that stops says where the next goes on."""

import itertools
import math
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

import pytest

from tests.services.world import World, user
from wms.auth.policy import Scope
from wms.db import job_search, selection
from wms.db.job_search import FoundJobs, IndexName, JobIndex, PageRequest
from wms.ids import JobId
from wms.job.state import AT_A_PILOT, RARE, State
from wms.messages.commands import Selector

ANN = Scope(reach="owner", owner="ann", group="physics", vo="lhcb")
ALL = Scope(reach="all")
BOB = user("bob", vo="lhcb")


async def search(the_world: World, scope: Scope, looked_at: int, page: PageRequest, **said: Any) -> FoundJobs:
    async with the_world.db.transaction() as tx:
        return await job_search.search(tx, scope, Selector(**said), page, 0.0, step=looked_at)


async def pages(the_world: World, scope: Scope, looked_at: int, *, newest: bool, **said: Any) -> list[JobId]:
    """Return the jobs of all pages of two, one search after another."""
    ids: list[JobId] = []
    after = None
    for _ in range(100):
        found = await search(the_world, scope, looked_at, PageRequest(2, after, newest=newest), **said)
        ids += found.ids
        if found.until is None:
            return ids
        assert found.until != after, "each search goes on"
        after = found.until
    raise AssertionError("the searches do not end")


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("scope", [ANN, ALL], ids=["owner", "all"])
async def test_short_searches_find_together_what_one_finds(
    the_world: World, scope: Scope, *, newest: bool
) -> None:
    running = sorted(each.job_id for each in await the_world.running(count=2, name="run"))
    held, killed, *waiting = await the_world.submitted(6, job_group="g", name="sim")
    await the_world.order("hold", held)
    await the_world.order("kill", killed)
    states = (State.HELD, State.KILLED, State.WAITING, State.RUNNING)
    step = -1 if newest else 1
    for said, ids in (
        ({"everything": True}, [*running, held, killed, *waiting]),
        ({"states": states}, [*running, held, killed, *waiting]),
        ({"states": (State.HELD, State.KILLED)}, [held, killed]),
        ({"states": (State.RUNNING,)}, running),
        ({"states": (State.WAITING,)}, waiting),
        ({"site": "A"}, running),
        ({"job_group": "g"}, [held, killed, *waiting]),
        ({"job_group": "g", "states": (State.WAITING, State.HELD)}, [held, *waiting]),
        ({"name": "run"}, running),
        ({"name": "none"}, []),
        ({"states": (State.DONE,)}, []),
    ):
        for looked_at in (1, 3, 100):
            assert await pages(the_world, scope, looked_at, newest=newest, **said) == ids[::step], said
            async with the_world.db.transaction() as tx:
                page = PageRequest(100, newest=newest)
                found = await job_search.search(tx, scope, Selector(**said), page, math.inf, step=looked_at)
            assert found == FoundJobs(ids[::step]), "one search that has the time"


async def test_a_search_without_a_match_stops_where_it_may_look_no_further(the_world: World) -> None:
    ids = await the_world.submitted(5)
    found = await search(the_world, ANN, 3, PageRequest(10), name="none")
    assert found == FoundJobs([], ids[2])
    rest = await search(the_world, ANN, 3, PageRequest(10, ids[2]), name="none")
    assert rest == FoundJobs([])


def test_a_step_is_as_large_as_the_time_allows() -> None:
    assert job_search.next_step(1_000, 0.004, 0.012, 5_000) == pytest.approx(3_000)
    assert job_search.next_step(1_000, 0.001, 0.012, 5_000) == 5_000
    assert job_search.next_step(1_000, 0.004, 0.001, 5_000) == job_search.FIRST_STEP, "a step that pays"
    assert job_search.next_step(3, 0.004, math.inf, 3) == 3


async def test_a_page_of_the_list_may_go_on_after_it(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_search, "search", partial(job_search.search, step=2))
    ids = await the_world.submitted(5)
    swept = await the_world.swept(3)
    async with the_world.db.transaction() as tx:
        found = await selection.search(tx, ANN, Selector(everything=True), PageRequest(100), 0.0)
        rest = await selection.search(tx, ANN, Selector(everything=True), PageRequest(100, ids[3]), 0.0)
        every = await selection.select(tx, ANN, Selector(everything=True), PageRequest(100))
    assert found == FoundJobs(ids[:2], ids[1]), "jobs in blocks come after those not looked at yet"
    assert rest == FoundJobs([ids[4], *swept])
    assert every == [*ids, *swept]
    async with the_world.db.transaction() as tx:
        found = await selection.search(tx, ANN, Selector(everything=True), PageRequest(100), 60.0)
    assert found == FoundJobs([*ids, *swept]), "there was time to look at all"


async def test_rare_states_are_noted_and_forgotten(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    noted = [(await the_world.job(job_id))["rare_state"]]
    for action in ("hold", "release", "kill"):
        await the_world.order(action, job_id)
        noted.append((await the_world.job(job_id))["rare_state"])
    assert noted == [None, "Held", None, "Killed"]


async def test_rows_of_jobs_from_blocks_note_their_rare_state(the_world: World) -> None:
    swept = await the_world.swept(3)
    await the_world.order("hold", *swept)
    await the_world.order("release", swept[1])
    rows = await the_world.sql("select state, rare_state from job")
    assert all(row["rare_state"] == (None if row["state"] == "Waiting" else row["state"]) for row in rows)


async def test_the_trigger_and_the_code_mean_the_same_states(the_world: World) -> None:
    (row,) = await the_world.sql("select pg_get_functiondef('job_note_rare_state'::regproc) as text")
    frequent = set(State) - RARE
    assert all((f"'{state}'" in row["text"]) == (state in frequent) for state in State)


def test_each_state_has_one_index() -> None:
    for states in itertools.combinations(State, 2):
        found = list(job_search.indexes(ANN, Selector(states=states)))
        assert sorted(state for index in found for state in index.states) == sorted(states)
    assert not RARE & AT_A_PILOT


def test_the_narrowest_index_is_chosen_for_an_owner() -> None:
    def one(scope: Scope, **said: Any) -> JobIndex:
        (index,) = job_search.indexes(scope, Selector(**said))
        return index

    waiting = (State.WAITING,)
    assert one(ANN, site="A", job_group="g") == JobIndex("group")
    assert one(ALL, job_group="g") == JobIndex("all"), "by owner, so that ids are in order"
    assert one(ALL, job_group="g", owner="ann") == JobIndex("group")
    assert one(ANN, site="A") == JobIndex("owner"), "a job gets its site as it is matched"
    assert one(ANN, states=waiting) == JobIndex("owner", waiting)
    assert one(ANN, states=(State.DONE,), name="x") == JobIndex("owner", (State.DONE,))
    assert one(ANN, states=(State.HELD,)) == JobIndex("rare state of owner", (State.HELD,), State.HELD)
    assert one(ALL, states=(State.HELD,)) == JobIndex("rare state", (State.HELD,), State.HELD)
    assert one(ANN, states=(State.RUNNING,)) == JobIndex("leases", (State.RUNNING,))


PARTS = 12
"""Of the statement: one for each index and direction."""
INDEX_OF: Mapping[IndexName, str] = {
    "all": "job_pkey",
    "owner": "job_by_owner",
    "group": "job_by_group",
    "rare state": "job_by_rare_state_of_all",
    "rare state of owner": "job_by_rare_state",
    "leases": "lease_pkey",
}


@pytest.mark.parametrize("name", get_args(IndexName))
@pytest.mark.parametrize("newest", [False, True])
async def test_each_index_is_scanned_in_its_own_order(
    the_world: World, name: IndexName, *, newest: bool
) -> None:
    """Also where statistics mislead: all jobs of the table are of one owner, so that its primary key seems as good."""
    ids = await the_world.submitted(200, job_group="g")
    await the_world.order("hold", *ids[50:])
    await the_world.sql("analyze job")
    after = job_search.HIGHEST if newest else job_search.LOWEST
    values = [name, newest, 5, after, "ann", 5, *[None] * 6, "g", None, False, None, "Held"]
    async with the_world.db.transaction() as tx:
        await tx.execute("set local enable_seqscan = off")
        rows = await tx.fetch("explain " + job_search.SQL["scan"], *values)
    plan = "\n".join(row[0] for row in rows)
    way = " Backward" if newest else ""
    assert re.search(rf"Index (Only )?Scan{way} using {INDEX_OF[name]} on", plan), plan
    assert plan.count("->  Sort") == PARTS - 1, f"only what is not scanned is sorted\n{plan}"


def test_a_page_ends_where_the_first_of_its_searches_ended() -> None:
    ids = [JobId(n) for n in range(10)]
    some = [FoundJobs(ids[:4:2]), FoundJobs(ids[1:8:2], JobId(2))]
    assert job_search.together(some, PageRequest(10)) == FoundJobs([JobId(0), JobId(1), JobId(2)], JobId(2))
    assert job_search.together(some[:1], PageRequest(2)) == FoundJobs([JobId(0), JobId(2)], JobId(2))
    assert job_search.together([FoundJobs(ids[:2])], PageRequest(10)) == FoundJobs(ids[:2])
