"""How fast the gateway is through HTTPS, all services and the users on the same machine.

python -m bench.gateway [--seconds N] [--jobs N] [--dashboards N] [--rows N] [--rounds N] [--json]

Single submissions; streams of descriptions; open streams of events, with and without events; and pages of 50 of a list of
`rows` jobs, by each filter. A user takes part in each measurement only as fast as the answers come.
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
from bench.measuring import Cpu, Figures, machine, median, postgres_version, run, system
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

AT_ONCE = 64
"""Single submissions that wait for their answers at a time."""
STREAMS = 4
EVENTS_PER_SECOND = 200
"""Submissions beside the dashboards, of users in turn; each makes an event."""
PAGES = 200
QUEUES = 100
FREE = str(10**6)
ENVIRONMENT = {
    "WMS_REQUESTS__TOKEN_PER_SECOND": FREE, "WMS_REQUESTS__TOKEN_BURST": FREE,
    "WMS_REQUESTS__OWNER_PER_SECOND": FREE, "WMS_REQUESTS__OWNER_BURST": FREE,
    "WMS_REQUESTS__ADDRESS_PER_SECOND": FREE, "WMS_REQUESTS__ADDRESS_BURST": FREE,
    "WMS_GATEWAY__CONNECTIONS": "5000", "WMS_GATEWAY__ADDRESS_CONNECTIONS": "5000",
}  # fmt: skip
"""All users come from one address."""


async def measure(seconds: int, jobs: int, dashboards: int, rows: int, rounds: int) -> Figures:
    async with secured(dashboards) as (running, users):
        about = machine(await postgres_version(running))
        await users.in_turn(users.submit_one, AT_ONCE, 1.0)
        singles, bulk = [], []
        for _ in range(rounds):
            singles.append(await single_submissions(running, users, seconds))
            bulk.append(await streams(running, users, jobs))
        found = {
            "singles": best_told(singles, "per_second"),
            "one_by_one": (await users.in_turn(users.submit_one, 1, seconds)).figures(),
            "bulk": best_told(bulk, "jobs_per_second"),
            "dashboards": await followed(running, users, seconds) if dashboards else {},
            "pages": await pages(running, users, rows) if rows else {},
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
            async with Users(url, authority, key, max(count, AT_ONCE)) as users:
                yield running, users


def best_told(found: list[Figures], what: str) -> Figures:
    """Return the round whose figure is the median, with those of all rounds."""
    ordered = sorted(found, key=lambda each: float(each[what]))
    return ordered[len(ordered) // 2] | {"rounds": [each[what] for each in found]}


async def single_submissions(running: System, users: Users, seconds: float) -> Figures:
    """Submit single jobs; all must be in the database."""
    before = await job_count(running)
    cpu = Cpu(running)
    taken = await users.in_turn(users.submit_one, AT_ONCE, seconds)
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
FILTERS = {
    "all": "",
    "newest": "newest=true",
    "a frequent state": "state=done",
    "a rare state": "state=failed",
    "rare states": "state=failed,killed,held",
    "states that none has": "state=staging",
    "waiting, of which there are few": "state=waiting",
    "running, of which there are none": "state=running",
    "live": "state=live&newest=true",
    "a site": "site=site-7",
    "a rare site": "site=site-rare",
    "a site that none has": "site=nowhere",
    "a name": "name=sim-77*",
    "a name that none has": "name=none",
    "a group": "group=group-7",
    "a small group": "group=group-small",
    "a group that none has": "group=none",
    "a rare state in a group": "state=failed&group=group-0",
    "a frequent state at a rare site": "state=done&site=site-rare",
    "a group at a site": "group=group-7&site=site-8",
    "the last minute": "since={minute}&newest=true",
    "the last minute, oldest first": "since={minute}",
    "the last day, failed at a site": "since={day}&state=failed&site=site-0&newest=true",
    "a page in the middle": "after={middle}",
    "outside of sweeps": "alone=true",
    "outside of sweeps, a rare state and site": "alone=true&state=failed&site=site-0",
}
OTHERS = 10
"""One of so many jobs is another user's."""
FILL = """
    insert into job (job_id, description_id, tq_id, owner, owner_group, vo, name, job_group, user_priority, max_attempts, event_seq,
                     state, rare_state, site, submitted_at, changed_at)
    select $2::bigint + n, j.description_id, j.tq_id, case when n % $4::integer = 3 then $5 else j.owner end, j.owner_group, j.vo,
           'sim-' || n, case when n % 99991 = 0 then 'group-small' else 'group-' || n % 1000 end, j.user_priority, j.max_attempts, 5,
           case when n % 500000 = 7 then 'Waiting' when n % 5000 = 0 then 'Failed' when n % 50000 = 1 then 'Killed' else 'Done' end,
           case when n % 500000 = 7 then null when n % 5000 = 0 then 'Failed' when n % 50000 = 1 then 'Killed' end,
           case when n % 500000 = 7 then null when n % 99989 = 0 then 'site-rare' else 'site-' || n % 100 end,
           now() - n * interval '1 s', now() - n * interval '1 s'
    from job j, generate_series($3::bigint, $6::bigint) n where j.job_id = $1
"""
"""Jobs of long ago: the older ones have the higher ids, so that those of the last minute are the first."""


async def pages(running: System, users: Users, rows: int) -> Figures:
    """Ask for pages of a list of so many jobs, nine tenths of which are one user's."""
    template = await users.submit_one(0)
    assert running.facts is not None
    connection = await asyncpg.connect(running.facts.postgres_url, command_timeout=3_600)
    try:
        first = await connection.fetchval("select max(job_id) from job")
        for low in range(1, rows + 1, 1_000_000):
            high = min(rows, low + 999_999)
            await connection.execute(FILL, template, first, low, OTHERS, users.owners[1], high)
        await connection.execute("vacuum (analyze) job")
    finally:
        await connection.close()
    now = time.time()
    given = {"minute": _moment(now - 60), "day": _moment(now - 86_400), "middle": first + rows // 2}
    return {
        "rows": rows,
        **{name: await _page(users, each.format(**given)) for name, each in FILTERS.items()},
    }


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


async def _page(users: Users, chosen: str) -> Figures:
    page = await users.ask(0, "GET", f"/jobs?limit=50&{chosen}")
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < PAGES and time.perf_counter() < began + 10:
        at = time.perf_counter()
        await users.ask(0, "GET", f"/jobs?limit=50&{chosen}")
        found.append(1e3 * (time.perf_counter() - at))
    return {
        "jobs": len(page["jobs"]),
        "goes_on": page["after"] is not None,
        "p50_ms": median(found),
        "p99_ms": median([sorted(found)[int(0.99 * len(found))]]),
    }


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
    run("gateway", measure, seconds=10, jobs=100_000, dashboards=1_000, rows=1_000_000, rounds=3)
