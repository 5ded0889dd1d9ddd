"""Submissions that are expensive to read, and jobs that are expensive to match: nobody else waits for them."""

import asyncio
import time

import asyncpg
import pytest

from tests.hostile.expensive import submission
from tests.hostile.innocent import PATIENCE_SECONDS, Innocent
from tests.hostile.renewals import MARGIN_SECONDS, renewals
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import Client, select
from wms.messages import commands

STORED = 55
"""Messages of 850 kB that are to be stored, of which each makes 52 queues; each takes seconds to read, and as many again to match."""
BESIDE_SECONDS = 60.0
"""So long the innocent user's jobs run while they are read, stored and learnt, one message after the other."""
OWNER = "mallory"


async def test_five_expensive_rehearsals_to_one_partition_leave_no_partition_deaf(
    target: Target, innocent: Innocent
) -> None:
    token = target.user_token(OWNER)
    async with innocent.beside():
        for n in range(5):
            await target.send(commands.TOPIC, [submission(n, rehearsal=True)], token, partition=0)


@pytest.mark.long
@pytest.mark.timeout(1_500)
async def test_jobs_with_expensive_requirements_take_no_lease_from_others(
    target: Target, innocent: Innocent
) -> None:
    token = target.user_token(OWNER)
    async with innocent.beside(), renewals(target, innocent.owner) as renewed:
        began = time.monotonic()
        for n in range(10, 10 + STORED):
            await target.send(commands.TOPIC, [submission(n)], token)
            await asyncio.sleep(0)
        await eventually(lambda: _is_matched(target), 5 * PATIENCE_SECONDS)
        await eventually(lambda: time.monotonic() > began + BESIDE_SECONDS, 2 * BESIDE_SECONDS)
    assert renewed.looks
    assert renewed.latest_seconds < MARGIN_SECONDS, f"{renewed.latest_seconds:.1f} s late"
    print(
        f"renewals were {renewed.latest_seconds:.2f} s late at most; {MARGIN_SECONDS:.1f} s would lose a job"
    )
    # What is still aside, or known to a matcher, would be expensive beside the next attack.
    await _drop_what_waits_aside(target)
    async with Client.connect(target.settings(OWNER)) as client:
        await client.kill(select(everything=True))
    await eventually(lambda: _none_is_matched(target), PATIENCE_SECONDS)


async def _drop_what_waits_aside(target: Target) -> None:
    """Drop what is not read yet: that takes minutes more."""
    connection = await asyncpg.connect(target.database)
    try:
        await connection.execute("delete from parked_message where owner = $1", OWNER)
    finally:
        await connection.close()


QUEUES = "select count(*) from queue_state join task_queue using (tq_id) where owner = $1"
"""That a matcher has added to its index."""


async def _is_matched(target: Target) -> bool:
    return await _count(target, QUEUES) > 10


async def _none_is_matched(target: Target) -> bool:
    return not await _count(target, QUEUES)


async def _count(target: Target, query: str) -> int:
    connection = await asyncpg.connect(target.database)
    try:
        return int(await connection.fetchval(query, OWNER))
    finally:
        await connection.close()
