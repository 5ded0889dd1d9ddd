"""An owner who sends what is expensive to read: everybody else is served as if there were nothing, and memory stays bounded."""

import time
from collections.abc import Awaitable
from typing import Any

import asyncpg
import msgspec
import psutil
import pytest

from tests.system.place import Place, owner, place
from tests.waiting import eventually
from wms.bus.kafka import Kafka, KafkaSettings
from wms.client import Client, JobDescription, select
from wms.ids import CommandId
from wms.messages import commands
from wms.messages.commands import Submit
from wms.messages.wire import encode

__all__ = ["owner", "place"]

MESSAGES = 55
WITHIN_SECONDS = 8.0
"""For an answer or a round trip, on a machine that may be busy; without turns of owners it took minutes."""
HELLO = JobDescription(executable="echo", name="hello")


def expensive(n: int) -> bytes:
    """Return a rehearsal of 210 jobs with a requirement of 4 kB each, all different: 850 kB, and seconds to read."""
    jobs = []
    for job in range(210):
        clauses = (f"other.a{n}x{job}x{clause} > {clause}" for clause in range(200))
        requirement = " || ".join(clauses)[:4_000].rpartition(" || ")[0]
        jobs.append(msgspec.json.encode({"executable": "true", "requirements": requirement}))
    return encode(
        Submit(command_id=CommandId(f"dear-{n}"), jobs=tuple(map(msgspec.Raw, jobs)), rehearsal=True)
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_nobody_waits_behind_50_mb_of_expensive_submissions(place: Place, owner: str) -> None:
    kafka = Kafka(msgspec.convert(place.kafka(), KafkaSettings), "dear")
    await kafka.start()
    headers = [("authorization", f"Bearer {place.token('dear').read_text()}".encode())]
    payloads = [expensive(n) for n in range(MESSAGES)]
    assert sum(map(len, payloads)) > 40_000_000
    async with Client.connect(place.settings(owner)) as client:
        await client.submit([HELLO])
        connection = await asyncpg.connect(place.postgres)
        try:
            for n, payload in enumerate(payloads):
                await kafka.send_many(commands.TOPIC, [b"k%d" % n], [payload], headers)
            await eventually(lambda: is_parked(connection), 60)
            slowest = 0.0
            for _ in range(5):
                slowest = max(slowest, await seconds(client.submit([HELLO])))
                slowest = max(slowest, await seconds(client.counts(select(everything=True))))
            # A probe is sent every few seconds.
            await eventually(lambda: has_probes(connection), 60)
            health = await health_of(connection)
            assert await is_parked(connection)  # it all happened meanwhile
        finally:
            await connection.close()
            await kafka.close()
    assert slowest < WITHIN_SECONDS
    # What renewals of leases wait for: a probe goes through all of the way of a report but its handler.
    trips = trips_of(health)
    assert max(trips) < 1_000 * WITHIN_SECONDS
    assert not any(each["stalled"] for partitions in health["partitions"].values() for each in partitions)
    assert place.process is not None
    print(f"slowest answer {slowest:.2f} s, round trips of reports {trips} ms")
    assert psutil.Process(place.process.pid).memory_info().rss < 500_000_000


async def is_parked(connection: asyncpg.Connection) -> bool:
    return bool(await connection.fetchval("select count(*) > 5 from parked_message"))


async def has_probes(connection: asyncpg.Connection) -> bool:
    """Return whether a probe of each partition of the reports has come back."""
    return len(trips_of(await health_of(connection))) == 4


def trips_of(health: Any) -> list[float]:
    return [each["round_trip_ms"] for each in health["probes"]["job_manager.reports"]["probes"]]


async def health_of(connection: asyncpg.Connection) -> Any:
    return msgspec.json.decode(
        await connection.fetchval(
            "select health::text from service_instance where service = 'job_manager' order by heartbeat_at desc"
        )
    )


async def seconds(work: Awaitable[Any]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began
