"""Counts of selected jobs: as many queries as it takes, each job once, and nothing of what others may not see."""

import itertools
from collections import Counter
from functools import partial
from typing import Any

import pytest

from services.job_manager.queries import counts
from services.job_manager.queries.counts import Counting
from tests.services.world import World, user
from wms.auth.principal import Principal
from wms.db import job_count
from wms.errors import Rejected
from wms.messages.commands import Selector
from wms.messages.queries import CountJobs
from wms.messages.replies import JobCounts

ANN = user("ann")
EVERYTHING = Selector(everything=True)


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece has two jobs of rows."""

    async def two(*given: Any, seconds: float) -> job_count.CountPiece:
        return await partial(job_count_count, step=2)(*given, seconds=0.0)

    job_count_count = job_count.count
    monkeypatch.setattr(job_count, "count", two)


async def ask(
    world: World, counting: Counting, below: int | None = None, who: Principal = ANN, **said: Any
) -> JobCounts:
    query = CountJobs(
        query_id="q", client="c", selector=Selector(**said), by_reason=True, in_pieces=True, below=below
    )
    async with world.db.transaction() as tx:
        return await counting.count_jobs(tx, who, query)


async def pieces(world: World, counting: Counting, **said: Any) -> list[JobCounts]:
    found = [await ask(world, counting, **said)]
    while (below := found[-1].counted_from) is not None:
        found.append(await ask(world, counting, below, **said))
    return found


@pytest.mark.usefixtures("_short")
async def test_pieces_count_each_job_once(the_world: World) -> None:
    swept = await the_world.swept(10)
    held, *others = await the_world.submitted(5)
    await the_world.order("hold", held, swept[0])
    found = await pieces(the_world, Counting(), everything=True)
    assert len(found) == 3, "five rows, two each"
    assert found[0].counts == {"Waiting": 11, "Held": 1}, "blocks are in the first piece"
    total, reasons = Counter[str](), Counter[str]()
    for each in found:
        total.update(each.counts)
        reasons.update(each.reasons.get("Held", {}))
    assert total == {"Waiting": len(others) + 9, "Held": 2}
    assert reasons == {"HELD_BY_USER": 2}


@pytest.mark.usefixtures("_short")
async def test_who_cannot_go_on_is_refused_a_count_that_is_not_whole(the_world: World) -> None:
    await the_world.submitted(2)
    async with the_world.db.transaction() as tx:
        with pytest.raises(Rejected, match="not counted at once"):
            await Counting().count_jobs(tx, ANN, CountJobs(query_id="q", selector=EVERYTHING))


async def test_few_jobs_are_counted_anew_each_time(the_world: World) -> None:
    counting = Counting(itertools.count().__next__)
    await the_world.submitted(2)
    assert (await ask(the_world, counting, everything=True)).counts == {"Waiting": 2}
    await the_world.submitted(1)
    assert (await ask(the_world, counting, everything=True)).counts == {"Waiting": 3}


async def test_counts_of_many_jobs_are_kept_for_who_may_see_the_same(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "STEP", 2)
    counting = Counting(itertools.count().__next__)  # counting takes some seconds of this clock
    await the_world.submitted(2)
    assert (await ask(the_world, counting, everything=True)).counts == {"Waiting": 2}
    await the_world.submitted(1)
    assert (await ask(the_world, counting, everything=True)).counts == {"Waiting": 2}
    assert (await ask(the_world, counting, states=("Waiting",))).counts == {"Waiting": 3}
    assert (await ask(the_world, counting, who=user("bob"), everything=True)).counts == {}
