"""Sweeps: one row for all their jobs, and their lists of parameters in chunks, brought before or with them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services.world import World, user
from wms.auth.policy import Scope
from wms.db import sweep
from wms.db.database import Transaction
from wms.ids import CommandId
from wms.job.state import State
from wms.jobdesc.array import CHUNK

ALL = Scope(reach="all")


@given(st.integers(1, 3 * CHUNK), st.integers(0, 2))
def test_lists_are_cut_into_chunks_of_a_thousand_jobs(count: int, more: int) -> None:
    lists = {f"p{n}": [f"{n}-{job}" for job in range(count)] for n in range(1 + more)}
    chunks = sweep.chunked(lists, count)
    assert len(chunks) == -(-count // CHUNK)
    assert sweep.chunked(dict(reversed(lists.items())), count) == chunks, "the same for the same lists"


@pytest.mark.parametrize(
    ("first", "last"), [(0, 0), (0, CHUNK), (CHUNK - 1, CHUNK), (CHUNK + 5, CHUNK + 7), (0, CHUNK + 9)]
)
async def test_values_of_jobs_are_found_whichever_chunk_they_are_in(
    the_world: World, first: int, last: int
) -> None:
    values = [f"v{n}" for n in range(CHUNK + 10)]
    await the_world.swept(len(values), parameters={"p": values, "q": values[::-1]})
    async with the_world.db.transaction() as tx:
        description = await tx.fetchval("select description_id from sweep")
        found = await sweep.parameters(tx, description, first, last)
    assert found == [{"p": values[n], "q": values[-1 - n]} for n in range(first, last + 1)]


async def test_a_part_is_its_owners_until_a_sweep_takes_it(tx: Transaction) -> None:
    assert await sweep.unused_of(tx, "ann") == (0, 0)
    one = await sweep.keep(tx, "ann", CommandId("c1"), ['{"p":["1"]}'], 100)
    two = await sweep.keep(tx, "ann", CommandId("c2"), ['{"p":["2"]}'], 50)
    await sweep.keep(tx, "bob", CommandId("c1"), ['{"p":["3"]}'], 7)
    assert await sweep.unused_of(tx, "ann") == (2, 150)
    assert await sweep.unused(tx, [one, two, 10**6]) == {one, two}


async def page(tx: Transaction, scope: Scope = ALL, **more: Any) -> list[int]:
    given: dict[str, Any] = {"owner": None, "states": (), "after": None, "newest": False, "limit": 10}
    return [row["first"] for row in await sweep.select(tx, scope, **given | more)]


async def test_sweeps_are_listed_with_a_job_in_one_of_the_states(the_world: World) -> None:
    first, second = (await the_world.swept(3))[0], (await the_world.swept(3, job_group="g"))[0]
    reply = await the_world.submit({"array": 3}, who=user("bob"))
    third = reply.ids[0][0]
    await the_world.order("hold", second + 1)
    async with the_world.db.transaction() as tx:
        assert await page(tx) == [first, second, third]
        assert await page(tx, newest=True, limit=2) == [third, second]
        assert await page(tx, after=first) == [second, third]
        assert await page(tx, states=(State.HELD,)) == [second]
        assert await page(tx, job_group="g") == [second]
        assert await page(tx, owner="bob") == [third]
        assert await page(tx, Scope(reach="owner", owner="ann", group="physics", vo="lhcb")) == [
            first,
            second,
        ]


async def test_jobs_of_sweeps_are_counted_by_state_wherever_they_are(the_world: World) -> None:
    ids = await the_world.swept(10)
    other = await the_world.swept(2)
    await the_world.order("hold", *ids[:3])
    await the_world.match(slots=1)
    async with the_world.db.transaction() as tx:
        found = await sweep.count(tx, [ids[0], other[0], 10**6])
    assert sum(found[ids[0]].values()) == 10
    assert found[ids[0]]["Held"] == 3
    assert sum(found[other[0]].values()) == 2
    assert {state for each in found.values() for state in each} == {"Waiting", "Held", "Matched"}
    assert found[10**6] == {}
