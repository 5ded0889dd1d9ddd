"""Submissions that are expensive to read: nobody else waits for them."""

import asyncio

import asyncpg

from tests.hostile.expensive import submission
from tests.hostile.innocent import PATIENCE_SECONDS, Innocent
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import Client, select
from wms.messages import commands

STORED = 3
"""Messages of 850 kB, of which each makes 52 queues; each takes seconds to read, and as many again to add to what is matched."""


async def test_five_expensive_rehearsals_to_one_partition_leave_no_partition_deaf(
    target: Target, innocent: Innocent
) -> None:
    token = target.user_token("mallory")
    async with innocent.beside():
        for n in range(5):
            await target.send(commands.TOPIC, [submission(n, rehearsal=True)], token, partition=0)


async def test_jobs_with_expensive_requirements_take_no_lease_from_others(
    target: Target, innocent: Innocent
) -> None:
    token = target.user_token("mallory")
    async with innocent.beside():
        for n in range(10, 10 + STORED):
            await target.send(commands.TOPIC, [submission(n)], token)
            await asyncio.sleep(0)
    # What is still aside would be expensive beside the next attack.
    async with Client.connect(target.settings("mallory")) as client:
        await eventually(lambda: _none_waits_aside(target), 2 * PATIENCE_SECONDS)
        await client.kill(select(everything=True))


async def _none_waits_aside(target: Target) -> bool:
    connection = await asyncpg.connect(target.database)
    try:
        return not await connection.fetchval("select count(*) from parked_message")
    finally:
        await connection.close()
