"""How fast the gateway is through HTTPS, all services and the users on the same machine.

python -m bench.gateway [--seconds N] [--jobs N] [--dashboards N] [--users N] [--rounds N] [--json]

Single submissions of so many users at a time; streams of descriptions; open streams of events, with and without events. A user takes part in
each measurement only as fast as the answers come.
"""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg

from bench.gateway_users import Dashboards, Users, certificate, lines
from bench.measuring import Cpu, Figures, machine, postgres_version, run, system
from bench.stock import at_rest
from bench.validity import InvalidError
from wms.auth.keys import load_key
from wms.bus.topics import find
from wms.client.credential import decode
from wms.client.kafka_requests import KafkaRequests
from wms.client.settings import read_settings
from wms.client.submission import messages, new_id
from wms.embedded.system import System
from wms.jobdesc.description import JobDescription
from wms.messages import commands, replies

STREAMS = 4
EVENTS_PER_SECOND = 200
"""Submissions beside the dashboards, of users in turn; each makes an event."""
QUEUES = 100
FREE = str(10**6)
ENVIRONMENT = {
    "WMS_REQUESTS__TOKEN_PER_SECOND": FREE, "WMS_REQUESTS__TOKEN_BURST": FREE,
    "WMS_REQUESTS__OWNER_PER_SECOND": FREE, "WMS_REQUESTS__OWNER_BURST": FREE,
    "WMS_REQUESTS__ADDRESS_PER_SECOND": FREE, "WMS_REQUESTS__ADDRESS_BURST": FREE,
    "WMS_GATEWAY__CONNECTIONS": "5000", "WMS_GATEWAY__ADDRESS_CONNECTIONS": "5000",
}  # fmt: skip
"""All users come from one address."""


async def measure(seconds: int, jobs: int, dashboards: int, users: int, rounds: int) -> Figures:
    async with secured(max(users, dashboards)) as (running, submitters):
        about = machine(await postgres_version(running))
        await submitters.in_turn(submitters.submit_one, users, 1.0)
        singles, bulk = [], []
        for _ in range(rounds):
            singles.append(await single_submissions(running, submitters, users, seconds))
            bulk.append(await streams(running, submitters, jobs))
        found = {
            "singles": best_told(singles, "per_second"),
            "one_by_one": (await submitters.in_turn(submitters.submit_one, 1, seconds)).figures(),
            "bulk": best_told(bulk, "jobs_per_second"),
            "dashboards": await followed(running, submitters, seconds) if dashboards else {},
        }
    return {"machine": about | {"load_after": round(os.getloadavg()[0], 2)}, **found}


@contextlib.asynccontextmanager
async def secured(count: int) -> AsyncIterator[tuple[System, Users]]:
    """Bring up a system whose gateway speaks HTTPS, and so many users."""
    with tempfile.TemporaryDirectory(prefix="wms-bench-tls-") as place:
        authority, private = certificate(Path(place))
        files = {"WMS_GATEWAY__CERTIFICATE": str(authority), "WMS_GATEWAY__PRIVATE_KEY": str(private)}
        async with system({"gateway": ENVIRONMENT | files}) as running:
            assert running.facts is not None
            url = f"https://127.0.0.1:{running.facts.gateway_port}/api/v1"
            key = load_key(running.layout.keys / "issuer.pem")
            async with Users(url, authority, key, count) as users:
                yield running, users


def best_told(found: list[Figures], what: str) -> Figures:
    """Return the round whose figure is the median, with those of all rounds."""
    ordered = sorted(found, key=lambda each: float(each[what]))
    return ordered[len(ordered) // 2] | {"rounds": [each[what] for each in found]}


async def single_submissions(running: System, users: Users, at_once: int, seconds: float) -> Figures:
    """Submit single jobs, `at_once` of which wait for their answers at a time; all must be in the database."""
    before = await job_count(running)
    cpu = Cpu(running)
    taken = await users.in_turn(users.submit_one, at_once, seconds)
    used = cpu.used()
    if (found := await job_count(running) - before) != len(taken.seconds):
        raise InvalidError(f"{len(taken.seconds)} jobs were taken, {found} are there")
    return taken.figures() | {"cpu_us_per_job": _each(used, len(taken.seconds))}


async def streams(running: System, users: Users, jobs: int) -> Figures:
    """Stream descriptions of several users; all must be in the database."""
    body = lines(jobs // STREAMS, QUEUES)
    await at_rest(running)
    before = await job_count(running)
    cpu = Cpu(running)
    began = time.perf_counter()
    taken = await asyncio.gather(*(users.submit_lines(n, body) for n in range(STREAMS)))
    took = time.perf_counter() - began
    used = cpu.used()
    if (found := await job_count(running) - before) != sum(taken):
        raise InvalidError(f"{sum(taken)} jobs were taken, {found} are there")
    return {
        "jobs_per_second": round(found / took),
        "seconds": round(took, 2),
        "cpu_us_per_job": _each(used, found),
    }


async def followed(running: System, users: Users, seconds: int) -> Figures:
    """Open a stream of events of each user; measure without events, and with those of submissions over Kafka."""
    boards = Dashboards(users)
    await at_rest(running)
    cpu, began = Cpu(running), time.perf_counter()
    await boards.follow()
    opening = {"seconds": round(time.perf_counter() - began, 1), "cpu_seconds": cpu.used()["gateway"]}
    try:
        await at_rest(running)
        quiet = await _idle(running, seconds)
        cpu = Cpu(running)
        began = time.perf_counter()
        wanted = await submitted(running, users, seconds)
        await boards.until_told(wanted, 30)
        took = time.perf_counter() - began
        return {
            "open": len(users.owners),
            "opening": opening,
            "cores_without_events": quiet,
            "events_per_second": round(sum(map(len, wanted)) / took),
            "cores_with_events": round(cpu.used()["gateway"] / took, 3),
        }
    finally:
        await boards.close()


async def _idle(running: System, seconds: float) -> float:
    cpu = Cpu(running)
    await asyncio.sleep(seconds)
    return round(cpu.used()["gateway"] / seconds, 3)


async def submitted(running: System, users: Users, seconds: int) -> list[set[int]]:
    """Submit jobs of the users in turn, past the gateway; return the ids of each user's."""
    found: list[set[int]] = [set() for _ in users.owners]
    whose = [decode(each.encode(), "bench") for each in users.tokens]
    line = KafkaRequests(read_settings(running.layout.root, {}).kafka, find(replies.GATEWAY_INBOX), "bench")
    await line.open(30)

    async def one(user: int) -> None:
        client = replies.GATEWAY_CLIENT + new_id()
        (order,) = messages([HELLO], new_id(), client).submits
        answer = await line.ask(
            commands.TOPIC,
            order.command_id,
            order,
            replies.Submitted,
            30,
            credential=whose[user],
            client=client,
        )
        found[user].update(range(answer.ids[0][0], answer.ids[0][1] + 1))

    try:
        async with asyncio.TaskGroup() as group:
            for n in range(seconds * EVENTS_PER_SECOND):
                group.create_task(one(n % len(whose)))
                await asyncio.sleep(1 / EVENTS_PER_SECOND)
    finally:
        await line.close()
    return found


HELLO = JobDescription(executable="sim", sites=("site-0",))


async def job_count(running: System) -> int:
    assert running.facts is not None
    connection = await asyncpg.connect(running.facts.postgres_url)
    try:
        return int(await connection.fetchval("select count(*) from job"))
    finally:
        await connection.close()


def _each(used: dict[str, float], count: int) -> dict[str, float]:
    return {name: round(1e6 * spent / max(1, count), 1) for name, spent in used.items()}


if __name__ == "__main__":
    run("gateway", measure, seconds=10, jobs=100_000, dashboards=1_000, users=64, rounds=3)
