"""What a pilot is given: by its token, once, from what waits; and what it is told when there is nothing."""

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest

from services.matcher.index_sync import IndexSync
from services.matcher.limit_gate import LimitGate
from services.matcher.matching import Matching
from tests.services.world import NOTICES, World, ids, pilot, user
from wms.bus.consumer import Delivery
from wms.bus.kafka import Kafka, KafkaSettings
from wms.db import block, job, task_queue
from wms.ids import JobId, PilotId, RequestId
from wms.lease import LeaseDurations
from wms.messages.match_requests import MatchRequest
from wms.messages.site_inbox import NoMatch, Offer
from wms.queue_index.index import QueueIndex
from wms.site import Resource


def request(
    name: str = "r-1",
    *,
    slots: int = 1,
    packed: bool = True,
    again: bool = False,
    seconds: float = 0.0,
    **resource: Any,
) -> MatchRequest:
    described = {"setup": "default", "vo": "lhcb", "cpu_time": 10**6, "processors": slots, **resource}
    return MatchRequest(
        request_id=RequestId(name),
        pilot_id=PilotId("p-1"),
        resource=Resource(**described),
        slots=slots,
        packed=packed,
        again=again,
        seconds=seconds,
    )


async def asked(world: World, *requests: MatchRequest, matching: Matching, who: Any = None) -> list[Any]:
    deliveries = [Delivery(who or pilot(), each) for each in requests]
    await world.db.attempt(lambda tx: matching.handle(tx, deliveries))
    return world.told((who or pilot()).site or "")


async def loaded(world: World, seed: int = 1) -> Matching:
    """A matcher of its own, with an index as it loads at its start."""
    index = QueueIndex()
    async with world.db.transaction() as tx:
        waiting = await job.waiting(tx)
        swept = await block.waiting(tx)
        required = await task_queue.read(tx, (tq_id for tq_id, *_ in (*waiting, *swept)))
    for tq_id, requirements in required.items():
        index.add_queue(tq_id, requirements)
    for tq_id, priority, job_ids in waiting:
        index.add(tq_id, priority, job_ids)
    for tq_id, priority, (first, last) in swept:
        index.add_range(tq_id, priority, JobId(first), JobId(last))
    return Matching(index, LimitGate(index, lambda: 0.0), LeaseDurations(), 1.0, np.random.default_rng(seed))


async def test_an_offer_says_all_that_an_agent_needs(the_world: World) -> None:
    await the_world.submit({"arguments": ["{n}", "{x}"], "name": "sim", "parameters": {"x": ["a", "b"]}})
    (offer,) = await asked(the_world, request(slots=2), matching=await loaded(the_world))
    assert isinstance(offer, Offer)
    assert {each.array_index: each.parameters for each in offer.jobs} == {0: {"x": "a"}, 1: {"x": "b"}}
    assert {(each.owner, each.owner_group, each.vo, each.epoch) for each in offer.jobs} == {
        ("ann", "physics", "lhcb", 1)
    }
    assert msgspec.json.decode(offer.jobs[0].description)["arguments"] == ["{n}", "{x}"]
    assert offer.hold_seconds == LeaseDurations().offer_seconds


async def test_the_same_request_again_brings_the_same_offer(the_world: World) -> None:
    await the_world.submitted(5)
    matching = await loaded(the_world)
    (first,) = await asked(the_world, request(slots=2), matching=matching)
    (again,) = await asked(the_world, request(slots=2, again=True), matching=matching)
    assert ids([each.attempt_id for each in first.jobs]) == ids([each.attempt_id for each in again.jobs])
    assert Counter([each["state"] for each in await the_world.sql("select state from job")]) == {
        "Matched": 2,
        "Waiting": 3,
    }


async def test_what_the_token_binds_overrules_what_the_body_says(the_world: World) -> None:
    await the_world.submitted(sites=["B"])
    await the_world.submit({}, who=user("eve", vo="other", group="others"))
    (answer,) = await asked(
        the_world, request(site="B", vo="other", grid_ce="elsewhere"), matching=await loaded(the_world)
    )
    assert isinstance(answer, NoMatch), "the pilot's token is of site A and VO lhcb"


async def test_another_pilots_token_brings_nothing(the_world: World) -> None:
    await the_world.submitted()
    answers = await asked(the_world, request(), matching=await loaded(the_world), who=pilot("p-2"))
    assert answers == []
    assert Counter(row["state"] for row in await the_world.sql("select state from job")) == {"Waiting": 1}


@pytest.mark.parametrize(
    ("description", "clause"),
    [
        ({"sites": ["B"]}, "site"),
        ({"banned_sites": ["A"]}, "site"),
        ({"tags": ["gpu"]}, "tag"),
        ({"memory_mb": 4000}, "memory"),
        ({"processors": 4}, "tag"),
        ({"platforms": ["Plan9-vax"]}, "platform"),
        ({"setup": "other"}, "setup"),
    ],
)
async def test_no_match_says_which_clause_and_when_to_ask_again(
    the_world: World, description: dict[str, Any], clause: str
) -> None:
    await the_world.submitted(**description)
    (answer,) = await asked(
        the_world, request(memory_mb=2000, platforms=("Linux-x86_64",)), matching=await loaded(the_world)
    )
    assert isinstance(answer, NoMatch)
    assert answer.code == "NO_FIT"
    assert clause in answer.reason.lower(), answer.reason
    assert answer.retry_after_seconds > 0


async def test_no_job_at_all_is_another_answer(the_world: World) -> None:
    (answer,) = await asked(the_world, request(), matching=await loaded(the_world))
    assert (answer.code, answer.reason) == ("NO_JOBS", "no job waits")


async def test_a_resource_that_contradicts_itself_is_refused(the_world: World) -> None:
    await the_world.submitted()
    (answer,) = await asked(the_world, request(required_tags=("gpu",)), matching=await loaded(the_world))
    assert answer.code == "REFUSED"
    assert "gpu" in answer.reason


async def test_jobs_beside_each_other_share_the_processors(the_world: World) -> None:
    await the_world.submitted(4, processors=4)
    (offer,) = await asked(the_world, request(slots=8), matching=await loaded(the_world))
    assert len(offer.jobs) == 2, "two jobs of four processors fill eight"


async def test_jobs_in_turn_each_have_all_of_them(the_world: World) -> None:
    await the_world.submitted(4, processors=4)
    matching = await loaded(the_world)
    (offer,) = await asked(the_world, request(slots=3, packed=False, processors=4), matching=matching)
    assert len(offer.jobs) == 3


async def test_many_matchers_never_give_a_job_twice(the_world: World) -> None:
    """Each has the whole index, so that they want the same jobs; the claim decides."""
    await the_world.submitted(200)
    matchers = [await loaded(the_world, seed) for seed in range(4)]
    rounds = [
        asked(the_world, request(f"r-{n}-{m}", slots=5, packed=False), matching=matchers[m], who=pilot())
        for n in range(10)
        for m in range(4)
    ]
    await asyncio.gather(*rounds)
    # The last requests may have drawn a job that another transaction held and then gave back.
    await asked(the_world, request("r-last", slots=5, packed=False), matching=await loaded(the_world))
    rows = await the_world.sql(
        "select job_id, count(*) as n, max(epoch) as epoch from attempt group by job_id"
    )
    assert len(rows) == 200
    assert {(row["n"], row["epoch"]) for row in rows} == {(1, 1)}


async def test_a_job_that_another_transaction_has_its_hands_on_is_drawn_over(the_world: World) -> None:
    """Nobody waits for it for long: what was claimed is undone, and claimed again by one who looks before."""
    first, second = await the_world.submitted(2)
    matching = await loaded(the_world)
    async with the_world.db.transaction() as tx:
        await tx.fetch("select from job where job_id = $1 for update", first)
        (offer,) = await asked(the_world, request(slots=2, packed=False), matching=matching)
        assert [each.job_id for each in offer.jobs] == [second]
    assert await the_world.state(first) == "Waiting"


async def test_a_transaction_that_fails_gives_its_jobs_back_to_the_index(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    matching = await loaded(the_world)

    async def crash() -> None:
        async with the_world.db.transaction() as tx:
            await matching.handle(tx, [Delivery(pilot(), request())])
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        await crash()
    assert await the_world.state(job_id) == "Waiting"
    (offer,) = await asked(the_world, request("r-2"), matching=matching)
    assert [each.job_id for each in offer.jobs] == [job_id]


async def test_a_job_that_is_gone_is_drawn_over(the_world: World) -> None:
    """The index may believe in jobs that were killed meanwhile: others are drawn in their place."""
    job_ids = await the_world.submitted(20)
    matching = await loaded(the_world)
    await the_world.order("kill", *job_ids[:18])
    (offer,) = await asked(the_world, request(slots=2, packed=False), matching=matching)
    drawn = {each.job_id for each in offer.jobs}
    assert drawn <= set(job_ids[18:])


async def test_large_descriptions_come_in_several_offers(the_world: World) -> None:
    await the_world.submitted(8, arguments=["x" * 30_000, "x" * 30_000, "x" * 30_000])
    offers = await asked(the_world, request(slots=8, packed=False), matching=await loaded(the_world))
    assert len(offers) == 2
    assert sum(len(each.jobs) for each in offers) == 8


async def test_the_index_is_set_right_in_both_directions(the_world: World) -> None:
    """A feed that lost messages: jobs entered and left without a word."""
    index = QueueIndex()
    feed = IndexSync(the_world.db, Kafka(KafkaSettings(), "test"), index, NOTICES)
    kept = await the_world.submitted(3)
    gone = await the_world.submitted(3)
    await feed.reconcile()
    assert len(index) == 6
    await the_world.order("kill", *gone)
    entered = await the_world.submitted(2, sites=["B"])
    await feed.reconcile()
    assert {job_id for tq_id in index.queue_ids() for job_id, _ in index.jobs(tq_id)} == {*kept, *entered}
    await the_world.order("kill", *kept, *entered)
    await feed.reconcile()
    assert list(index.queue_ids()) == []


async def test_with_late_news_a_request_never_gets_more_than_it_asked_for(the_world: World) -> None:
    """Two matchers give out the same jobs, and hear nothing of each other: most draws are in vain, and are repeated."""
    await the_world.submitted(160, memory_mb=100)
    first, second = [await loaded(the_world, seed) for seed in (1, 2)]
    for number in range(6):
        for matching in (first, second):
            name = f"{number}-{id(matching)}"
            packed = number % 2 == 0
            wanted = request(name, slots=16, packed=packed, processors=16, memory_mb=1_200)
            offers = await asked(the_world, wanted, matching=matching)
            assert sum(len(each.jobs) for each in offers if isinstance(each, Offer)) <= (12 if packed else 16)


async def test_short_jobs_follow_in_a_slot_and_long_ones_keep_their_turn(the_world: World) -> None:
    await the_world.submit({"array": 50}, who=user("ann"))
    await the_world.submit({"array": 8}, who=user("bob"))
    matching = await loaded(the_world)
    short = next(each for each in matching._index.queue_ids() if matching._index.count(each) == 50)
    matching._turns.likely_seconds = {short: 0.25}
    turns = []
    for number in range(24):
        ahead = number % 2 == 1
        (answer,) = await asked(
            the_world, request(f"r-{number}", packed=not ahead, seconds=1.0), matching=matching
        )
        jobs = answer.jobs if isinstance(answer, Offer) else ()
        turns.append((ahead, [(each.owner, each.likely_seconds) for each in jobs]))
    assert [("ann", 0.25)] * 4 in [jobs for _, jobs in turns]
    assert not [jobs for ahead, jobs in turns if ahead and ("bob", None) in jobs], (
        "a slot has no long job in reserve"
    )
    # Half of the turns are bob's: those that were drawn in vain came later.
    assert [jobs for ahead, jobs in turns if not ahead].count([("bob", None)]) >= 4
    assert not await the_world.sql("select from ended_attempt")


DEAR = 'regexp(".*.*[xy]", strcat("{}{:03}", string(other.CPUTime), "x"))'
"""Half a million steps."""


async def test_requirements_that_take_long_are_judged_with_pauses_for_others(the_world: World) -> None:
    dear = [(await the_world.submitted(requirements=DEAR.format("a" * 600, n)))[0] for n in range(60)]
    matching = await loaded(the_world)
    evaluated: list[int] = []

    async def look() -> None:
        while True:
            evaluated.append(matching._index.evaluated)
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    (offer,) = await asked(the_world, request(slots=64), matching=matching)
    looking.cancel()
    assert {each.job_id for each in offer.jobs} == set(dear)
    assert max(after - before for before, after in pairwise(evaluated)) <= 30


async def test_requirements_that_take_too_long_are_left_and_the_jobs_of_others_are_matched(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.matcher.matching.PAUSES", 0)
    dear = [(await the_world.submitted(requirements=DEAR.format("a" * 600, n)))[0] for n in range(60)]
    (cheap,) = await the_world.submitted(requirements="other.CPUTime > 7", sites=["A"])
    matching = await loaded(the_world)
    offered: list[JobId] = []
    for n in range(8):
        before = matching._index.evaluated
        (answer,) = await asked(the_world, request(f"r-{n}", slots=64), matching=matching)
        assert matching._index.evaluated - before <= 30
        offered += [each.job_id for each in answer.jobs] if isinstance(answer, Offer) else []
        if not n:
            assert cheap in offered
    assert set(offered) == {*dear, cheap}
