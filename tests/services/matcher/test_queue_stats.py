"""Statistics of queues: one matcher writes them, and only what changed."""

from collections import Counter

import asyncpg
import pytest

from services.matcher.queue_stats import QueueStatsWriter
from tests.services.world import World, pilot, user
from wms.bus.consumer import Delivery
from wms.ids import PilotId, RequestId
from wms.messages.match_requests import MatchRequest
from wms.messages.queries import ListQueues
from wms.queue_index.index import QueueIndex
from wms.site import Resource


async def queue_lines(world: World) -> list[int]:
    reply = await world.ask(user(), ListQueues(query_id="q"))
    return [line.waiting for line in reply.queues]


async def test_queues_are_counted_until_a_matcher_says_how_they_do(the_world: World) -> None:
    await the_world.submitted(3)
    await the_world.submitted(2, memory_mb=1)
    assert await queue_lines(the_world) == [3, 2]
    await the_world.watch()
    assert await queue_lines(the_world) == [3, 2]
    await the_world.submitted(4)
    assert await queue_lines(the_world) == [3, 2], "it has not looked again"
    await the_world.watch()
    assert await queue_lines(the_world) == [7, 2]
    await the_world.sql("update queue_watch set at = now() - interval '1 min'")
    await the_world.submitted()
    assert await queue_lines(the_world) == [8, 2], "it is silent"


async def test_a_matcher_writes_what_changed_and_forgets_what_is_gone(the_world: World) -> None:
    first, _ = await the_world.submitted(2)
    (other,) = await the_world.submitted(memory_mb=1)
    await the_world.watch()
    rows = "select tq_id, waiting, weight, xmin::text as version from queue_state order by tq_id"
    before = await the_world.sql(rows)
    await the_world.order("kill", first)
    await the_world.watch()
    after = await the_world.sql(rows)
    assert [row["waiting"] for row in after] == [1, 1]
    assert [old["version"] == new["version"] for old, new in zip(before, after, strict=True)] == [False, True]
    await the_world.order("kill", other)
    await the_world.watch()
    assert len(await the_world.sql(rows)) == 1


async def test_one_matcher_watches_and_another_takes_over(the_world: World) -> None:
    await the_world.submitted(2)
    await the_world.watch()
    empty = QueueIndex()
    other = QueueStatsWriter(the_world.db, empty, Counter(), "dirac", "another")
    await other.write()
    assert await queue_lines(the_world) == [2]
    await the_world.sql("update queue_watch set at = now() - interval '1 min'")
    await other.write()
    assert await queue_lines(the_world) == [], "it knows of none, and forgot what the first said"
    await the_world.watch()
    assert await queue_lines(the_world) == [], "the first has lost the watch"
    await the_world.sql("update queue_watch set at = now() - interval '1 min'")
    await the_world.watch()
    assert await queue_lines(the_world) == [2], "and says all anew when it has it again"


async def test_matches_of_a_transaction_that_failed_are_not_counted(the_world: World) -> None:
    await the_world.submitted(3)
    await the_world.match()
    assert sum(the_world._matching.by_queue.values()) == 1
    with pytest.raises(asyncpg.DivisionByZeroError):
        await failing_match(the_world)
    assert sum(the_world._matching.by_queue.values()) == 1


async def failing_match(world: World) -> None:
    request = MatchRequest(
        request_id=RequestId("r"),
        pilot_id=PilotId("p-1"),
        resource=Resource(setup="default", vo="lhcb", cpu_time=10**6),
    )
    async with world.db.transaction() as tx:
        await world._matching.handle(tx, [Delivery(pilot(), request)])
        await tx.fetch("select 1 / 0")
