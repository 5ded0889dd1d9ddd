"""Limits hold at every instant, however many matchers claim at once; they open when jobs end, and change as they run."""

import asyncio
import random
from functools import partial
from typing import Any

import asyncpg
import numpy as np
import pytest

from services.matcher.index_sync import IndexSync
from services.matcher.limit_gate import LimitGate
from services.matcher.matching import Matching
from services.matcher.policy_refresh import PolicyRefresh
from tests.services.world import NOTICES, World, pilot, result, user
from wms.bus.consumer import Delivery
from wms.bus.kafka import Kafka, KafkaSettings
from wms.db import limit
from wms.db.database import Transaction
from wms.ids import AttemptId, CommandId, PilotId, RequestId
from wms.lease import LeaseDurations
from wms.matching.limits import LimitKey, LimitRule
from wms.messages import limits as sent
from wms.messages import queue_changes, replies
from wms.messages.commands import DropLimit, SetLimit
from wms.messages.match_requests import MatchRequest
from wms.messages.wire import Codec
from wms.queue_index.index import QueueIndex
from wms.site import Resource

CHANGES: Codec[queue_changes.Change] = Codec(queue_changes.Change)


def most(running: int, **named: Any) -> LimitRule:
    return LimitRule(**{"site": "A", "most": running, **named})


async def ruled(world: World, *limits: LimitRule) -> None:
    async with world.db.transaction() as tx:
        for each in limits:
            await limit.set_limit(tx, each, "oz")
    await world.rules.refresh()


async def hear(world: World, *gates: LimitGate) -> list[LimitKey]:
    """Hand the matchers what was told of limits that opened; return it."""
    told = [CHANGES.decode(each) for each in world.take(queue_changes.TOPIC)]
    opened = [LimitKey(*key) for each in told if isinstance(each, queue_changes.Opened) for key in each.keys]
    for gate in (world.gate, *gates):
        gate.open(opened)
    return opened


async def running(world: World) -> dict[LimitKey, int]:
    async with world.db.transaction() as tx:
        return {key: count.running for key, count in (await limit.all_counts(tx)).items() if count.running}


async def test_no_more_run_than_the_limit_says(the_world: World) -> None:
    await the_world.submitted(5)
    await ruled(the_world, most(2))
    held = await the_world.match(slots=5)
    assert len(held) == 2
    assert await the_world.match(pilot("p-2"), slots=5) == []
    assert len(await the_world.match(pilot("p-3", site="B"), slots=1)) == 1, "another site has no limit"
    assert await running(the_world) == {LimitKey("A", "", "any", ""): 2}
    assert the_world.index.closed("A") == {("any", "")}


async def test_a_limit_by_tag_or_type_is_not_evaded_by_another_spelling(the_world: World) -> None:
    await the_world.submitted(2, tags=["GPU"])
    await the_world.submitted(2, tags=["gpu"])
    (answer,) = await the_world.command(OPERATOR, SetLimit(
        command_id=CommandId("set-gpu"), limit=sent.Limit(site="A", most=1, attribute="tag", value="Gpu")
    ))  # fmt: skip
    assert isinstance(answer, replies.Ruled), answer
    await the_world.rules.refresh()
    assert len(await the_world.match(slots=4, tags=("GPU",))) == 1
    assert await running(the_world) == {LimitKey("A", "", "tag", "gpu"): 1}
    drop = DropLimit(
        command_id=CommandId("drop-gpu"), kind="running", key=sent.CounterKey("A", "", "tag", "GPU")
    )
    (answer,) = await the_world.command(OPERATOR, drop)
    assert isinstance(answer, replies.Ruled), answer


@pytest.mark.parametrize("way", ["done", "declined", "expired", "pilot lost", "killed"])
async def test_whatever_ends_a_lease_makes_room(the_world: World, way: str) -> None:
    await the_world.submitted(4)
    await ruled(the_world, most(1))
    (held,) = await the_world.match()
    match way:
        case "done":
            await the_world.report(accept=(held,))
            await the_world.report(start=(held,), finish=(result(held),))
        case "declined":
            await the_world.report(decline=(held,))
        case "expired":
            await the_world.expire(held[0])
        case "pilot lost":
            await the_world.report(accept=(held,), state="ended")
        case "killed":
            await the_world.report(accept=(held,))
            await the_world.order("kill", held[0])
            await the_world.report(start=(held,), finish=(result(held, "killed"),))
    assert await running(the_world) == {}
    assert await hear(the_world) == [LimitKey("A", "", "any", "")]
    assert len(await the_world.match(slots=2)) == 1


async def test_each_owner_by_itself(the_world: World) -> None:
    await ruled(the_world, most(2, attribute="owner", value="*"))
    for owner in ("ann", "bob"):
        await the_world.submit({"array": 4}, who=user(owner))
    held = await the_world.match(slots=8)
    assert len(held) == 4
    assert sorted((await running(the_world)).items()) == [
        (LimitKey("A", "", "owner", "ann"), 2),
        (LimitKey("A", "", "owner", "bob"), 2),
    ]


async def test_limits_are_anded(the_world: World) -> None:
    """Reaching the limit on tags does not lift that on owners, as it would where negations are ORed."""
    await ruled(the_world, most(1, attribute="tag", value="slow"), most(2, attribute="owner", value="ann"))
    await the_world.submit({"array": 5, "tags": ["slow"]}, {"array": 5})
    held = [
        each
        for _ in range(4)
        for each in await asked(the_world, the_world_matcher(the_world), 3, tags=("slow",))
    ]
    assert len(held) == 2
    counts = await running(the_world)
    assert counts[LimitKey("A", "", "owner", "ann")] == 2
    assert counts.get(LimitKey("A", "", "tag", "slow"), 0) <= 1


async def test_of_one_computing_element(the_world: World) -> None:
    await the_world.submitted(4)
    await ruled(the_world, most(1, ce="*"), most(3, site="*"))
    assert len(await the_world.match(slots=2)) == 1
    assert await running(the_world) == {LimitKey("A", "ce", "any", ""): 1, LimitKey("A", "", "any", ""): 1}


async def test_what_runs_already_is_counted(the_world: World) -> None:
    await the_world.submitted(6)
    held = await the_world.match(slots=3)
    await ruled(the_world, most(4, attribute="owner", value="*"))
    assert await running(the_world) == {LimitKey("A", "", "owner", "ann"): 3}
    assert len(await the_world.match(pilot("p-2"), slots=3)) == 1
    await the_world.report(decline=tuple(held))
    assert await running(the_world) == {LimitKey("A", "", "owner", "ann"): 1}


async def test_a_limit_lowered_kills_nothing_and_starts_nothing(the_world: World) -> None:
    await the_world.submitted(6)
    await ruled(the_world, most(4))
    held = await the_world.match(slots=4)
    await ruled(the_world, most(1))
    assert await the_world.match(pilot("p-2"), slots=2) == []
    assert all([await the_world.state(job_id) == "Matched" for job_id, _ in held])
    await the_world.report(decline=tuple(held[:3]))
    await hear(the_world)
    assert await the_world.match(pilot("p-2"), slots=2) == []
    await the_world.report(decline=(held[3],))
    await hear(the_world)
    assert len(await the_world.match(pilot("p-2"), slots=2)) == 1


async def test_a_limit_raised_or_lifted_lets_pass(the_world: World) -> None:
    await the_world.submitted(6)
    await ruled(the_world, most(1))
    assert len(await the_world.match(slots=4)) == 1
    await ruled(the_world, most(2))
    assert len(await the_world.match(pilot("p-2"), slots=4)) == 1
    async with the_world.db.transaction() as tx:
        await limit.lift(tx, "running", most(1).key, "oz")
    await the_world.rules.refresh()
    assert len(await the_world.match(pilot("p-3"), slots=9)) == 4


async def test_should_the_word_of_room_be_lost_it_is_looked_for(the_world: World) -> None:
    await the_world.submitted(3)
    await ruled(the_world, most(1))
    (held,) = await the_world.match()
    assert await the_world.match(pilot("p-2")) == []
    await the_world.report(decline=(held,))
    the_world.take(queue_changes.TOPIC)
    assert await the_world.match(pilot("p-2")) == []
    await the_world.rules.refresh()
    assert len(await the_world.match(pilot("p-2"))) == 1


async def test_a_transaction_that_fails_has_counted_and_closed_nothing(the_world: World) -> None:
    await the_world.submitted(3)
    await ruled(the_world, most(2))
    matcher = the_world_matcher(the_world)
    with pytest.raises(RuntimeError, match="power is gone"):
        await asked(the_world, matcher, 3, fail=True)
    assert await running(the_world) == {}
    assert the_world.index.closed("A") == set()
    assert len(await asked(the_world, matcher, 3)) == 2


async def test_jobs_without_a_limit_pay_nothing(the_world: World) -> None:
    await the_world.submitted(3)
    await ruled(the_world, most(1, attribute="owner", value="bob"))
    await the_world.match(slots=3)
    assert await the_world.sql("select 1 from limit_counter") == []
    assert await the_world.sql("select 1 from lease where counted is not null") == []


async def test_a_rate_is_kept_over_time(the_world: World) -> None:
    await the_world.submitted(20)
    await ruled(the_world, LimitRule(kind="rate", site="A", most=3, per_second=2.0))
    assert len(await the_world.match(slots=9)) == 3, "the burst"
    assert await the_world.match(pilot("p-2"), slots=9) == []
    await later(the_world, 1.1)
    assert len(await the_world.match(pilot("p-2"), slots=9)) == 2
    await later(the_world, 60)
    assert len(await the_world.match(pilot("p-3"), slots=9)) == 3, "no more than the burst is saved up"


async def later(world: World, seconds: float) -> None:
    """Let so much time pass: in the database, and by the matcher's clock."""
    await world.sql("update limit_counter set refilled_at = refilled_at - make_interval(secs => $1)", seconds)
    world.now += seconds


OPERATOR = user("oz", "operator", vo="ops", group="ops")


class Matcher:
    """One of several over the same database, with memory and chance of its own."""

    def __init__(self, world: World, seed: int) -> None:
        self.index = QueueIndex()
        self.gate = LimitGate(self.index, lambda: world.now)
        self.rules = PolicyRefresh(world.db, self.index, self.gate, lambda: world.now)
        self.feed = IndexSync(world.db, Kafka(KafkaSettings(), "test"), self.index, NOTICES)
        self.matching = Matching(self.index, self.gate, LeaseDurations(), 1.0, np.random.default_rng(seed))


def the_world_matcher(world: World) -> Matcher:
    matcher = Matcher(world, 1)
    matcher.index, matcher.gate, matcher.rules = world.index, world.gate, world.rules
    matcher.feed = IndexSync(world.db, Kafka(KafkaSettings(), "test"), world.index, NOTICES)
    matcher.matching = Matching(world.index, world.gate, LeaseDurations(), 1.0, np.random.default_rng(1))
    return matcher


_requests = iter(range(10**9))


async def asked(
    world: World, matcher: Matcher, slots: int, who: Any = None, *, fail: bool = False, **resource: Any
) -> list[AttemptId]:
    """Have a matcher answer one request, and return what it offered."""
    who = await world.add_pilot(who)
    await matcher.feed.reconcile()
    described = {"setup": "default", "vo": "lhcb", "cpu_time": 10**6, "processors": slots, "memory_mb": 10**5}
    request = MatchRequest(
        request_id=RequestId(f"r-{next(_requests)}"),
        pilot_id=PilotId(who.pilot_id),
        resource=Resource(**{**described, **resource}),
        slots=slots,
    )

    async def handle(tx: Transaction) -> None:
        await matcher.matching.handle(tx, [Delivery(who, request)])
        if fail:
            raise RuntimeError("power is gone")

    await world.db.attempt(handle)
    rows = await world.sql("select job_id, epoch from lease where request_id = $1", request.request_id)
    return [AttemptId(row["job_id"], row["epoch"]) for row in rows]


LEASES_BY_OWNER = """
select j.owner, count(*) as leases from lease l join job j using (job_id) where j.site = 'A' group by j.owner
"""


@pytest.mark.parametrize("seed", range(3))
async def test_no_limit_is_passed_at_any_instant(the_world: World, seed: int) -> None:
    """Four matchers claim while jobs end in all ways; another looks on, and the database itself is a witness."""
    rng = random.Random(seed)
    owners = {"ann": 3, "bob": 3, "cleo": 5}
    for owner in owners:
        await the_world.submit({"array": 30}, {"array": 10, "tags": ["slow"]}, who=user(owner))
    await ruled(
        the_world,
        most(3, attribute="owner", value="*"),
        most(4, attribute="tag", value="slow"),
        most(7),
        most(5, ce="*"),
    )
    matchers = [Matcher(the_world, 10 * seed + n) for n in range(4)]
    for each in matchers:
        await each.rules.refresh()
    done = asyncio.Event()
    seen: list[int] = []

    async def look_on() -> None:
        while not done.is_set():
            rows = await the_world.sql(LEASES_BY_OWNER)
            assert all(row["leases"] <= 3 for row in rows), rows
            assert sum(row["leases"] for row in rows) <= 5
            counted = await the_world.sql("select running from limit_counter where attribute = 'any'")
            seen.extend(row["running"] for row in counted)

    async def match_and_end(n: int, matcher: Matcher) -> int:
        claimed = 0
        kept: dict[str, list[AttemptId]] = {}
        for turn in range(20):
            name = f"p-{n}-{turn}"
            slots = rng.randint(1, 4)
            kept[name] = await patient(partial(asked, the_world, matcher, slots, pilot(name), tags=("slow",)))
            claimed += len(kept[name])
            for name in [each for each in kept if rng.random() < 0.7]:
                await patient(partial(the_world.report, pilot(name), decline=tuple(kept.pop(name))))
            await hear(the_world, *(each.gate for each in matchers))
        return claimed

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look_on())
        work = [group.create_task(match_and_end(n, each)) for n, each in enumerate(matchers)]
        claimed = sum([await each for each in work])
        done.set()
        await looking
    assert claimed > 15, "limits that let nothing pass are kept easily"
    assert max(seen) == 5, "and the limit was reached"
    await assert_counted(the_world)


async def patient(act: Any) -> Any:
    """Begin a transaction again that the database ended, as a service does."""
    while True:
        try:
            return await act()
        except asyncpg.DeadlockDetectedError:
            continue


async def assert_counted(world: World) -> None:
    """Every counter is the number of leases that it counts."""
    rows = await world.sql(
        "select c.counter_id, c.running, (select count(*) from lease l where l.counted @> array[c.counter_id]) as leases"
        " from limit_counter c"
    )
    assert rows
    assert [dict(row) for row in rows if row["running"] != row["leases"]] == []


async def test_a_limit_that_comes_while_matchers_claim_is_kept_once_all_know_it(the_world: World) -> None:
    """A matcher that does not know it yet claims uncounted; what it claimed is counted afterwards."""
    await the_world.submitted(12)
    one, late = Matcher(the_world, 1), Matcher(the_world, 2)
    await asked(the_world, late, 2)
    async with the_world.db.transaction() as tx:
        await limit.set_limit(tx, most(5), "oz")
    await one.rules.refresh()
    assert len(await asked(the_world, one, 2, pilot("p-2"))) == 2
    await asked(the_world, late, 2, pilot("p-3"))
    the_world.now += 5
    await one.rules.refresh()
    assert await running(the_world) == {LimitKey("A", "", "any", ""): 6}
    assert await asked(the_world, one, 2, pilot("p-4")) == []
    await assert_counted(the_world)
