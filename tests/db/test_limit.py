"""Limits: what holds, and counters that are locked, counted, given back and begun anew by ads."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from tests.services.world import World
from tests.waiting import eventually
from wms.db import limit
from wms.db.database import Database, Transaction
from wms.db.limit import AdAllowance
from wms.ids import CeId, JobId
from wms.matching.limits import Count, LimitKey, LimitRule, all_jobs
from wms.messages import queue_changes

ANN, BOB = LimitKey("A", "", "owner", "ann"), LimitKey("A", "", "owner", "bob")
FILE = LimitRule(site="A", attribute="owner", value="ann", most=3)
HERE = CeId("A", "ce")


@pytest_asyncio.fixture(loop_scope="session")
async def told(db: Database) -> AsyncIterator[list[dict[str, object]]]:
    """Yield what matchers are told."""
    found: list[dict[str, object]] = []
    db.on_posted = lambda parcels: found.extend(
        json.loads(payload)
        for each in parcels
        if each.topic == queue_changes.TOPIC
        for payload in each.payloads
    )
    yield found


# --- what holds -------------------------------------------------------------------------------------


async def holding(tx: Transaction) -> list[LimitRule]:
    return limit.holding(await limit.sourced(tx))


async def test_what_was_set_goes_before_the_file_until_it_is_reset(tx: Transaction) -> None:
    await limit.replace_configured(tx, [FILE])
    assert await holding(tx) == [FILE]
    wider = LimitRule(site="A", attribute="owner", value="ann", most=9)
    await limit.set_limit(tx, wider, "oz")
    assert [(each.limit, each.source, each.said_by) for each in await limit.sourced(tx)] == [
        (wider, "set", "oz")
    ]
    await limit.lift(tx, "running", ANN, "oz")
    assert await holding(tx) == []
    assert [each.lifted for each in await limit.sourced(tx)] == [True]
    assert await limit.reset(tx, "running", ANN)
    assert not await limit.reset(tx, "running", ANN)
    assert await holding(tx) == [FILE]


async def test_matchers_are_told_of_a_file_only_if_it_is_news(
    db: Database, told: list[dict[str, object]]
) -> None:
    rate = LimitRule(kind="rate", site="A", attribute="owner", value="ann", most=5, per_second=0.5)
    for limits, news in (([FILE], 1), ([FILE], 0), ([FILE, rate], 1), ([rate], 1), ([], 1), ([], 0)):
        told.clear()
        async with db.transaction() as tx:
            await limit.replace_configured(tx, limits)
        assert len(told) == news, limits


# --- counters ---------------------------------------------------------------------------------------


async def take(tx: Transaction, taken: dict[LimitKey, int], awaited: tuple[LimitKey, ...] = ()) -> None:
    """Count so many jobs on counters."""
    locked = await limit.lock(tx, taken.keys(), wait=True)
    left = {key: each.level for key, each in locked.items()}
    await limit.settle(tx, locked, taken, left, awaited, {})


async def test_keys_are_counted_from_nothing_on(tx: Transaction) -> None:
    assert await limit.counts(tx, [ANN]) == {}
    locked = await limit.lock(tx, {ANN, BOB}, wait=True)
    assert {key: each.level for key, each in locked.items()} == {ANN: Count(), BOB: Count()}
    await take(tx, {ANN: 2})
    await take(tx, {ANN: 1, BOB: 0})
    assert {key: each.running for key, each in (await limit.counts(tx, [ANN, BOB])).items()} == {
        ANN: 3,
        BOB: 0,
    }
    assert set(await limit.all_counts(tx)) == {ANN}


async def test_who_holds_a_counter_already_does_not_wait_for_others(db: Database) -> None:
    async with db.transaction() as tx:
        await limit.lock(tx, {ANN, BOB}, wait=True)
    async with db.transaction() as one, db.transaction() as other:
        await limit.lock(one, {ANN}, wait=True)
        async with asyncio.timeout(10):
            assert set(await limit.lock(other, {ANN, BOB}, wait=False)) == {BOB}


async def test_who_waits_for_a_counter_sees_what_was_counted_meanwhile(db: Database) -> None:
    async with db.transaction() as tx:
        await limit.lock(tx, {ANN}, wait=True)
    begun: list[bool] = []

    async def second() -> int:
        async with db.transaction() as tx:
            begun.append(True)
            return (await limit.lock(tx, {ANN}, wait=True))[ANN].level.running

    async with db.transaction() as tx:
        await take(tx, {ANN: 5})
        task = asyncio.create_task(second())
        await eventually(lambda: begun)
        assert not task.done()
    assert await task == 5


async def test_what_is_given_back_is_told_only_where_it_was_waited_for(
    db: Database, told: list[dict[str, object]]
) -> None:
    async with db.transaction() as tx:
        await take(tx, {ANN: 2, BOB: 2}, awaited=(ANN,))
        numbers = await limit.counters(tx, [ANN, BOB])
    for _, message in enumerate(([["A", "", "owner", "ann"]], None)):
        told.clear()
        async with db.transaction() as tx:
            await limit.give_back(tx, [numbers[ANN], numbers[BOB]])
        assert [each["keys"] for each in told] == ([message] if message else []), (
            "the second time nobody waits"
        )
    async with db.transaction() as tx:
        await limit.give_back(tx, [])
        assert {each.running for each in (await limit.counts(tx, [ANN, BOB])).values()} == {0}


async def test_leases_know_by_which_counters_they_are_counted(the_world: World) -> None:
    (held,) = await the_world.running()
    async with the_world.db.transaction() as tx:
        (lease,) = await limit.leased(tx, 0, 10)
        assert (lease.job_id, lease.site, lease.ce, lease.counted) == (held.job_id, "A", "ce", frozenset())
        await limit.count_in(tx, {lease: [ANN, BOB]})
        await limit.count_in(tx, {lease: [ANN]})
        numbers = await limit.counters(tx, [ANN, BOB])
        (lease,) = await limit.leased(tx, 0, 10)
        assert lease.counted == set(numbers.values())
        assert (await limit.counts(tx, [ANN]))[ANN].running == 1, "each lease is counted once"
        assert await limit.leased(tx, held.job_id, 10) == []


async def test_a_lease_whose_job_is_locked_is_counted_later(the_world: World) -> None:
    (held,) = await the_world.running()
    async with the_world.db.transaction() as busy, the_world.db.transaction() as tx:
        await busy.execute("select from job where job_id = $1 for update", held.job_id)
        (lease,) = await limit.leased(tx, 0, 10)
        await limit.count_in(tx, {lease: [ANN]})
        assert (await limit.counts(tx, [ANN]))[ANN].running == 0


# --- ads --------------------------------------------------------------------------------------------


async def level(tx: Transaction) -> Count:
    return (await limit.counts(tx, [all_jobs("A", "ce")]))[all_jobs("A", "ce")]


async def test_an_ad_lets_so_many_come_until_the_next(tx: Transaction) -> None:
    await limit.advertise(tx, {HERE: AdAllowance(5, 900.0), CeId("A", "free"): AdAllowance(None, 900.0)})
    assert (await limit.advertising(tx)).places == {HERE}
    await take(tx, {all_jobs("A", "ce"): 2})
    assert ((await level(tx)).allowed, (await level(tx)).matched) == (5, 2)
    later = await tx.now() + timedelta(seconds=1)
    await limit.advertise(tx, {HERE: AdAllowance(3, 900.0, observed_at=later)})
    assert ((await level(tx)).allowed, (await level(tx)).matched) == (3, 0)


async def test_an_element_that_went_away_lets_nothing_more_come(tx: Transaction) -> None:
    await limit.advertise(tx, {HERE: AdAllowance(5, 900.0)})
    await limit.end_ads(tx, [HERE])
    await limit.end_ads(tx, [])
    assert (await level(tx)).allowed == 0


async def test_an_element_that_begins_to_state_a_limit_is_a_new_generation(tx: Transaction) -> None:
    before = (await limit.advertising(tx)).generation
    await limit.advertise(tx, {HERE: AdAllowance(5, 900.0)})
    begun = (await limit.advertising(tx)).generation
    assert begun > before
    await limit.advertise(tx, {HERE: AdAllowance(4, 900.0)})
    assert (await limit.advertising(tx)).generation == begun


async def test_pilots_are_counted_up_to_what_the_ad_leaves(tx: Transaction) -> None:
    await limit.advertise(tx, {HERE: AdAllowance(5, 900.0)})
    assert (await limit.pilots_left(tx)) == {HERE: 5}
    assert await limit.count_pilots(tx, {HERE: 3, CeId("A", "free"): 9}) == {HERE: 3}
    assert (await limit.pilots_left(tx)) == {HERE: 2}
    assert await limit.count_pilots(tx, {HERE: 3}) == {HERE: 2}
    assert await limit.count_pilots(tx, {HERE: 1}) == {HERE: 0}


async def test_a_job_that_is_no_more_is_no_lease(the_world: World) -> None:
    (held,) = await the_world.running()
    async with the_world.db.transaction() as tx:
        (lease,) = await limit.leased(tx, 0, 10)
        await tx.execute("delete from lease")
        await limit.count_in(tx, {lease: [ANN]})
        assert (await limit.counts(tx, [ANN]))[ANN].running == 0
        assert lease.job_id == JobId(held.job_id)


@pytest.mark.parametrize("wait", [True, False])
async def test_to_lock_nothing_is_nothing(tx: Transaction, *, wait: bool) -> None:
    assert await limit.lock(tx, set(), wait=wait) == {}
