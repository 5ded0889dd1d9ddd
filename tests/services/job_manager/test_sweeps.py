"""Sweeps: a million jobs in one row, and each of them a job like any other as soon as something happens to it."""

import asyncio
from collections import Counter
from typing import Any

import numpy as np
import pytest

from services.matcher.index_sync import IndexSync
from services.matcher.limit_gate import LimitGate
from services.matcher.matching import Matching
from tests.services.world import NOTICES, World, pilot, result, user
from wms.audit import audit
from wms.bus.consumer import Delivery
from wms.bus.kafka import Kafka, KafkaSettings
from wms.db import block, sandbox, task_queue, timeline
from wms.ids import CommandId, JobId, PilotId, RequestId
from wms.job.state import State
from wms.messages import replies
from wms.messages.commands import Control, Selector
from wms.messages.match_requests import MatchRequest
from wms.messages.queries import CountJobs, ListJobs, ListSweeps, ShowJob, WhyJob
from wms.messages.site_inbox import Offer
from wms.queue_index.index import QueueIndex
from wms.site import Resource


@pytest.fixture(autouse=True)
async def _audited(the_world: World) -> Any:
    """Whatever a test did, the auditor finds nothing."""
    yield
    report = await audit(the_world.url)
    assert report.ok, report.text(brief=True)


async def order(world: World, action: Any, *ranges: tuple[int, int], **more: Any) -> replies.Controlled:
    selector = Selector(ids=ranges, **more)
    control = Control(command_id=CommandId(f"{action}-{ranges}-{more}"), action=action, selector=selector)
    (reply,) = await world.command(user(), control)
    assert isinstance(reply, replies.Controlled), reply
    return reply


async def counts(world: World, selector: Selector) -> dict[str, int]:
    counted: dict[str, int] = (await world.ask(user(), CountJobs(query_id="q", selector=selector))).counts
    return counted


async def blocks(world: World) -> list[tuple[int, int, str]]:
    rows = await world.sql("select first, last, state from block order by first")
    return [(row["first"], row["last"], row["state"]) for row in rows]


async def rows_of(world: World) -> int:
    (row,) = await world.sql("select count(*) as jobs from job")
    return int(row["jobs"])


async def test_a_million_jobs_are_one_row(the_world: World) -> None:
    reply = await the_world.submit({"array": 1_000_000})
    ((first, last),) = reply.ids
    assert last - first + 1 == 1_000_000
    assert await blocks(the_world) == [(first, last, "Waiting")]
    assert await rows_of(the_world) == 0
    assert await counts(the_world, Selector(ids=((first, last),))) == {"Waiting": 1_000_000}
    assert await counts(the_world, Selector(ids=((first + 10, first + 19),))) == {"Waiting": 10}


async def test_it_is_killed_as_one(the_world: World) -> None:
    ((first, last),) = (await the_world.submit({"array": 1_000_000})).ids
    assert (await order(the_world, "kill", (first, last))).changed == 1_000_000
    assert await blocks(the_world) == [(first, last, "Killed")]
    again = await order(the_world, "kill", (first, last + 1))
    assert (again.changed, again.unchanged_total, len(again.unchanged)) == (0, 1_000_000, 100)
    assert await the_world.match() == []


async def test_what_is_ordered_of_a_part_cuts_it(the_world: World) -> None:
    ids = await the_world.swept(100)
    assert (await order(the_world, "hold", (ids[5], ids[10]), (ids[20], ids[20]))).changed == 7
    assert await blocks(the_world) == [
        (ids[0], ids[4], "Waiting"),
        (ids[5], ids[10], "Held"),
        (ids[11], ids[19], "Waiting"),
        (ids[20], ids[20], "Held"),
        (ids[21], ids[99], "Waiting"),
    ]
    assert (await order(the_world, "release", (ids[0], ids[7]))).changed == 3
    assert await counts(the_world, Selector(ids=((ids[0], ids[99]),))) == {"Waiting": 96, "Held": 4}
    assert (await order(the_world, "kill", (ids[0], ids[99]), states=("Held",))).changed == 4
    assert (await order(the_world, "remove", (ids[0], ids[99]), states=("Killed",))).changed == 4
    assert (await order(the_world, "reschedule", (ids[0], ids[9]))).changed == 8


async def test_its_jobs_leave_it_when_pilots_ask(the_world: World) -> None:
    ids = await the_world.swept(2_500, name="sim-{n}", arguments=["{n}"])
    held = await the_world.match(slots=8)
    assert len(held) == 8
    rows = await rows_of(the_world)
    assert rows == 8 * block.AHEAD
    assert await blocks(the_world) == [(ids[rows], ids[-1], "Waiting")]
    await the_world.report(accept=tuple(held), start=tuple(held), busy=8)
    await the_world.report(finish=tuple(result(each) for each in held))
    job_id = held[0][0]
    assert await the_world.history(job_id) == ["Received", "Waiting", "Matched", "Running", "Done"]
    row = await the_world.job(job_id)
    assert (row["name"], row["array_index"]) == (f"sim-{job_id - ids[0]}", job_id - ids[0])
    assert await counts(the_world, Selector(everything=True)) == {"Waiting": 2_492, "Done": 8}


async def test_every_job_is_matched_exactly_once(the_world: World) -> None:
    ids = await the_world.swept(2_100)
    seen: Counter[int] = Counter()
    await the_world.add_pilot(slots=len(ids))
    while held := await the_world.match(slots=300):
        seen.update(job_id for job_id, _ in held)
    assert seen == Counter(ids)


async def test_held_jobs_of_it_are_not_matched_until_they_are_released(the_world: World) -> None:
    ids = await the_world.swept(10)
    await order(the_world, "hold", (ids[0], ids[8]))
    assert [job_id for job_id, _ in await the_world.match(slots=10)] == [ids[9]]
    await order(the_world, "release", (ids[0], ids[8]))
    assert sorted(job_id for job_id, _ in await the_world.match(slots=10)) == ids[:9]
    assert await the_world.reasons(ids[0]) == ["ACCEPTED", "QUEUED", "HELD_BY_USER", "RELEASED", "OFFERED"]


async def test_a_matchers_stale_index_does_not_match_what_was_killed_in_a_block(the_world: World) -> None:
    ids = await the_world.swept(10)
    await the_world._feed.reconcile()
    await order(the_world, "kill", (ids[0], ids[4]))
    assert len(the_world.index) == 10
    assert sorted(job_id for job_id, _ in await the_world.match(slots=10)) == ids[5:]


async def test_two_matchers_at_one_block_give_every_job_away_once(the_world: World) -> None:
    """They draw the same jobs, and both would give them their rows. What one has its hands on the other passes over."""
    ids = await the_world.swept(3_000)
    asking = [await the_world.add_pilot(pilot(f"p-{n}"), slots=500) for n in range(2)]
    matchers, feeds = [], []
    for n in range(2):
        index = QueueIndex()
        feeds.append(IndexSync(the_world.db, Kafka(KafkaSettings(), "test"), index, NOTICES))
        matchers.append(
            Matching(index, LimitGate(index, lambda: 0.0), the_world.terms, 1.0, np.random.default_rng(n))
        )

    async def ask(n: int, request: int) -> None:
        resource = Resource(setup="default", vo="lhcb", cpu_time=10**6, processors=500, memory_mb=100_000)
        message = MatchRequest(
            request_id=RequestId(f"{n}-{request}"), pilot_id=PilotId(f"p-{n}"), resource=resource, slots=500
        )
        await the_world.db.attempt(lambda tx: matchers[n].handle(tx, [Delivery(asking[n], message)]))

    for request in range(5):
        for feed in feeds:
            await feed.reconcile()
        await asyncio.gather(ask(0, request), ask(1, request))
    offers = [each for each in the_world.told() if isinstance(each, Offer)]
    given = Counter(job.job_id for offer in offers for job in offer.jobs)
    assert given == Counter(ids)
    assert await blocks(the_world) == []


async def test_an_expansion_that_fails_leaves_the_block_whole(the_world: World) -> None:
    ids = await the_world.swept(50)

    async def fail() -> None:
        async with the_world.db.transaction() as tx:
            assert await block.expand(tx, [JobId(ids[3])])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert await blocks(the_world) == [(ids[0], ids[-1], "Waiting")]
    assert await rows_of(the_world) == 0


async def test_a_kill_and_an_expansion_at_once_never_lose_or_double_a_job(the_world: World) -> None:
    ids = await the_world.swept(5_000)

    async def expand(start: int) -> None:
        async with the_world.db.transaction() as tx:
            await block.expand(tx, ids[start : start + 10])

    orders = [order(the_world, "kill", (ids[n], ids[n + 700])) for n in (900, 2_100)]
    await asyncio.gather(expand(0), expand(500), expand(1_000), expand(2_500), *orders)
    total = await counts(the_world, Selector(ids=((ids[0], ids[-1]),)))
    assert sum(total.values()) == 5_000
    assert total["Killed"] == 1_402


async def test_each_job_has_its_own_parameters(the_world: World) -> None:
    files = [f"f{n}.txt" for n in range(1_500)]
    reply = await the_world.submit(
        {
            "arguments": ["{file}", "{mode}"],
            "name": "count {file}",
            "parameters": {"file": files, "mode": ["a", "b", "c"] * 500},
        }
    )
    ((first, last),) = reply.ids
    assert last - first + 1 == 1_500
    shown = await the_world.ask(user(), ShowJob(query_id="q", job_id=first + 1_234))
    assert (shown.job.name, shown.array_index) == ("count f1234.txt", 1_234)
    assert shown.parameters == {"file": "f1234.txt", "mode": "b"}
    assert "parameters" not in shown.description
    await order(the_world, "kill", (first, first + 1_233))
    ((offered, _),) = await the_world.match(slots=1)
    ((row,),) = [await the_world.sql("select name, parameters::text from job where job_id = $1", offered)]
    assert row["name"] == f"count f{offered - first}.txt"
    assert f'"f{offered - first}.txt"' in row["parameters"]
    after = await the_world.ask(user(), ShowJob(query_id="q", job_id=offered))
    assert after.parameters["file"] == f"f{offered - first}.txt"


async def test_archives_of_single_jobs_are_kept_until_the_sweep_is_deleted(the_world: World) -> None:
    digests = [f"{n:064x}" for n in range(1_500)]
    reply = await the_world.submit(
        {"parameters": {"own": [f"{each}:7" for each in digests]}, "input_parameters": ["own"]}
    )

    async def referenced() -> set[str]:
        async with the_world.db.transaction() as tx:
            return await sandbox.referenced(tx)

    assert await referenced() == set(digests)
    await order(the_world, "kill", reply.ids[0])
    assert await referenced() == set(digests)
    await order(the_world, "remove", reply.ids[0])
    assert await referenced() == set()


async def test_a_job_without_a_row_is_shown_and_explained_like_any_other(the_world: World) -> None:
    ids = await the_world.swept(3_000)
    before = await the_world.ask(user(), ShowJob(query_id="q", job_id=ids[0]))
    why = await the_world.ask(user(), WhyJob(query_id="q", job_id=ids[0]))
    assert (why.state, why.code) == ("Waiting", "IMPOSSIBLE_NOW")
    async with the_world.db.transaction() as tx:
        await block.expand(tx, [ids[0]])
    assert await the_world.ask(user(), ShowJob(query_id="q", job_id=ids[0])) == before
    assert [line.state for line in before.history] == ["Received", "Waiting"]


async def test_reports_have_the_times_of_jobs_with_and_without_rows(the_world: World) -> None:
    ids = await the_world.swept(1_200)
    await the_world.match(slots=3)
    async with the_world.db.transaction() as tx:
        times = await timeline.of_ranges(tx, [(ids[0], ids[-1])])
    assert [each.job_id for each in times] == ids
    assert sum(each.offered_at is not None for each in times) == 3
    assert {each.state for each in times[-100:]} == {"Waiting"}


async def test_another_owners_sweep_is_neither_seen_nor_killed(the_world: World) -> None:
    ids = await the_world.swept(100)
    everything = Selector(everything=True)
    assert (await the_world.ask(user("bob"), CountJobs(query_id="q", selector=everything))).counts == {}
    control = Control(command_id=CommandId("k"), action="kill", selector=Selector(ids=((ids[0], ids[-1]),)))
    (reply,) = await the_world.command(user("bob"), control)
    assert isinstance(reply, replies.Controlled)
    assert reply.changed == 0
    assert await counts(the_world, everything) == {"Waiting": 100}


async def test_a_list_shows_a_sweep_as_one_with_its_jobs_by_state(the_world: World) -> None:
    (alone,) = await the_world.submitted()
    ids = await the_world.swept(1_500, name="sim-{n}")
    gone = await the_world.swept(10)
    await order(the_world, "remove", (gone[0], gone[-1]))
    await order(the_world, "hold", (ids[-10], ids[-1]))
    await the_world.match(slots=5)
    live = [state for state in State if state is not State.DELETED]
    page = await the_world.ask(user(), ListSweeps(query_id="q", states=tuple(live), newest=True))
    (line,) = page.sweeps
    assert (line.first, line.last, line.name) == (ids[0], ids[-1], "sim-{n}")
    matched = 4 if (await the_world.state(alone)) == "Matched" else 5
    assert line.counts == {"Waiting": 1_490 - matched, "Held": 10, "Matched": matched}
    everyone = await the_world.ask(user(), ListSweeps(query_id="q"))
    assert [each.first for each in everyone.sweeps] == [ids[0], gone[0]]
    assert not (await the_world.ask(user("bob"), ListSweeps(query_id="q"))).sweeps
    single = await the_world.ask(
        user(), ListJobs(query_id="q", selector=Selector(everything=True), alone=True)
    )
    assert [each.job_id for each in single.jobs] == [alone]


@pytest.mark.parametrize("newest", [False, True])
async def test_pages_go_over_rows_and_blocks_in_order(the_world: World, *, newest: bool) -> None:
    ids = [
        *await the_world.submitted(3),
        *await the_world.swept(1_200, name="a-{n}"),
        *await the_world.submitted(2),
        *await the_world.swept(10),
    ]
    await the_world.match(slots=5)
    found: list[int] = []
    after: int | None = None
    while True:
        query = ListJobs(
            query_id="q", selector=Selector(everything=True), after=after, newest=newest, limit=100
        )
        page = await the_world.ask(user(), query)
        found += [line.job_id for line in page.jobs]
        after = page.after
        if after is None:
            break
    assert found == sorted(ids, reverse=newest)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("sim-*", 200), ("sim-7", 1), ("sim-1?", 10), ("*-1*", 111), ("nothing*", 0), ("s", 0), ("sim", 0)],
)
async def test_jobs_are_found_by_the_names_that_they_have(the_world: World, pattern: str, found: int) -> None:
    await the_world.swept(200, name="sim-{n}")
    await the_world.swept(50, name="other")
    counted = await counts(the_world, Selector(name=pattern))
    assert sum(counted.values()) == found
    assert (await order(the_world, "kill", name=pattern)).changed == found


async def test_its_queue_stays_while_it_waits(the_world: World) -> None:
    await the_world.swept(100)
    for _ in range(2):
        async with the_world.db.transaction() as tx:
            assert await task_queue.remove_long_empty(tx, 0.0) == 0


async def test_jobs_of_many_sweeps_asked_for_at_once_are_each_given_once(the_world: World) -> None:
    """What is asked of one sweep is nothing to the blocks of the others."""
    swept = [await the_world.swept(400, sites=["A", f"B{n}"]) for n in range(12)]
    held = await the_world.match(slots=24)
    assert len({job_id for job_id, _ in held}) == 24
    assert {job_id for job_id, _ in held} <= {job_id for ids in swept for job_id in ids}
    assert await counts(the_world, Selector(everything=True)) == {"Waiting": 4_776, "Matched": 24}
    assert await rows_of(the_world) < 1_000
