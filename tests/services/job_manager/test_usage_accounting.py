"""Usage is charged once, in the transaction that ends the attempt; it halves with time, and moves shares."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from services.job_manager.queries.answer import Queries
from services.job_manager.reports import Reports
from services.matcher.policy_refresh import PolicyRefresh
from tests.services.world import World, pilot, result, user
from wms.bus.consumer import Delivery
from wms.db import usage
from wms.ids import Identity
from wms.job.reasons import Code
from wms.matching.grouping import DEFAULT_SEGMENTS
from wms.messages.queries import ListShares
from wms.messages.reports import Usage

HOUR = 3_600.0
ANN, BOB = Identity("ann", "physics", "lhcb"), Identity("bob", "physics", "lhcb")


@pytest_asyncio.fixture(loop_scope="session")
async def counting(the_world: World) -> AsyncIterator[World]:
    """A world in which usage halves in an hour."""
    the_world._reports = Reports(the_world.terms, half_life_hours=1.0)
    the_world._queries = Queries(DEFAULT_SEGMENTS, half_life_hours=1.0)
    the_world.rules = PolicyRefresh(
        the_world.db, the_world.index, the_world.gate, lambda: 0.0, half_life_hours=1.0
    )
    yield the_world


async def used(world: World) -> dict[Identity, float]:
    async with world.db.transaction() as tx:
        return await usage.read(tx, HOUR)


async def ended(world: World, seconds: float, *, who: str = "ann", processors: int = 1) -> None:
    await world.submit({"processors": processors}, who=user(who))
    (held,) = await world.match(slots=processors)
    await world.report(accept=(held,), start=(held,))
    await world.wait_hours()
    await world.report(finish=(result(held, usage=Usage(wall_seconds=seconds)),))


async def later(world: World, seconds: float) -> None:
    await world.sql("update owner_usage set at = at - make_interval(secs => $1)", seconds)


async def test_wall_time_by_processors_is_charged_once(counting: World) -> None:
    await ended(counting, 100.0)
    await counting.submit({"processors": 4})
    (held,) = await counting.match(slots=4)
    await counting.report(accept=(held,), start=(held,))
    await counting.wait_hours()
    finish = (result(held, "failed", Code.EXIT_CODE, exit_code=1, usage=Usage(wall_seconds=50.0)),)
    await counting.report(finish=finish)
    await counting.report(finish=finish)
    assert await used(counting) == {ANN: pytest.approx(300.0, rel=1e-3)}


async def test_no_pilot_charges_an_owner_more_than_the_time_it_had_the_job(counting: World) -> None:
    (held,) = await counting.running()
    lie = result(held, slot_seconds=1e11, usage=Usage(wall_seconds=1e11, cpu_user_seconds=1e11))
    await counting.report(finish=(lie,))
    assert 0 < (await used(counting))[ANN] < 60
    (attempt,) = await counting.attempts(held[0])
    assert attempt["wall_seconds"] < 60
    assert all(row["mean"] < 60 for row in await counting.sql("select mean from run_time"))


async def test_what_did_not_run_is_not_charged(counting: World) -> None:
    await counting.submitted(2)
    one, other = await counting.match(slots=2)
    await counting.report(decline=(one,))
    await counting.report(accept=(other,))
    await counting.expire(other[0])
    assert await used(counting) == {}


async def test_it_halves_with_every_half_life(counting: World) -> None:
    await ended(counting, 800.0)
    await later(counting, HOUR)
    assert (await used(counting))[ANN] == pytest.approx(400, rel=1e-3)
    await ended(counting, 100.0)
    await later(counting, 2 * HOUR)
    assert (await used(counting))[ANN] == pytest.approx(125, rel=1e-3), "(400 + 100) / 4"
    await later(counting, 1e9)
    assert (await used(counting))[ANN] == pytest.approx(0)
    await ended(counting, 7.0)
    assert (await used(counting))[ANN] == pytest.approx(7, rel=1e-3)


async def test_charges_at_once_are_all_there(counting: World) -> None:
    owners = [ANN, BOB]

    async def charge() -> None:
        async with counting.db.transaction() as tx:
            await usage.charge(tx, dict.fromkeys(owners, 5.0), HOUR)

    await asyncio.gather(*(charge() for _ in range(20)))
    assert await used(counting) == {owner: pytest.approx(100, rel=1e-2) for owner in owners}


async def test_who_has_used_more_weighs_less(counting: World) -> None:
    await ended(counting, 300.0, who="ann")
    await ended(counting, 100.0, who="bob")
    await counting.submit()
    await counting.submit(who=user("bob"))
    await counting.reconcile()
    await counting.rules.refresh()
    rows = await counting.sql("select tq_id, owner from task_queue order by owner")
    ann, bob = weights = [counting.index.weight(row["tq_id"]) for row in rows]
    assert weights == pytest.approx([500 * 0.5 / 0.75, 500 * 0.5 / 0.25], rel=1e-2)
    (line,) = (await counting.ask(user(), ListShares(query_id="q"))).shares
    assert line.used_hours == pytest.approx(400 / HOUR, rel=1e-2)
    assert line.effective_share == pytest.approx(ann + bob, rel=1e-2)


async def test_nothing_is_kept_where_it_does_not_count(the_world: World) -> None:
    await ended(the_world, 100.0)
    assert await used(the_world) == {}
    (line,) = (await the_world.ask(user(), ListShares(query_id="q"))).shares or (None,)
    assert line is None


async def test_a_charge_comes_and_goes_with_its_transaction(counting: World) -> None:
    (held,) = await counting.running()
    who = pilot()
    report = counting.made(who, finish=(result(held, usage=Usage(wall_seconds=9.0)),))

    async def handle_and_fail() -> None:
        async with counting.db.transaction() as tx:
            await counting._reports.handle(tx, [Delivery(who, report)])
            raise RuntimeError("power is gone")

    with pytest.raises(RuntimeError, match="power is gone"):
        await handle_and_fail()
    assert await used(counting) == {}
