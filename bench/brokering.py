"""How fast jobs are placed: the seconds from each submission to its placement, one by one, and how many a second come through at once.

python -m bench.brokering [--jobs N] [--sets N] [--at-once N] [--json]

As in Elmroth and Tordsson's evaluation: twelve elements, sets of 200 jobs, each submitted once the one before is placed, counted in five
classes of seconds; then many clients at once. The elements are rows of ads, and no pilots are sent. Nothing is reserved here.
"""

import asyncio
import time
from itertools import pairwise

import asyncpg
import msgspec

from bench.measuring import Cpu, Figures, machine, median, percentile, postgres_version, run, system
from bench.validity import InvalidError
from wms.client import Client, JobDescription
from wms.jobdesc.preferences import JobBenchmark, JobPreferences
from wms.site import ComputingElement

ELEMENTS = 12
CLASSES = (0.0, 2.0, 5.0, 8.0, 11.0, float("inf"))
"""The bounds, in seconds, of the reference's classes without reservations."""
PLACED_WITHIN = 120.0
AD = """insert into ad (site, ce, element, attributes, advertised_at, expires_at)
        values ($1, 'ce', $2::text::jsonb, $3::text::jsonb, now(), now() + interval '1 day')"""
WAITING = "select count(*) from job where state = 'Waiting' and job_id between $1 and $2"

JOB = JobDescription(
    executable="sim",
    cpu_time=3_600,
    preferences=JobPreferences(benchmarks=(JobBenchmark(name="SI00", result=1_000, seconds=3_000),)),
)


async def measure(jobs: int, sets: int, at_once: int) -> Figures:
    async with system(services=("job_manager", "resource_broker")) as running:
        about = machine(await postgres_version(running))
        assert running.facts is not None
        connection = await asyncpg.connect(running.facts.postgres_url)
        await advertise(connection)
        async with Client.connect(running.layout.root, timeout=600) as client:
            await one(client, connection)
            cpu = Cpu(running)
            found = [[await one(client, connection) for _ in range(jobs)] for _ in range(sets)]
            used = cpu.used()
            rate = await many(client, connection, at_once)
        await connection.close()
    every = [each for some in found for each in some]
    return {
        "machine": about,
        "seconds": {"median": median(every), "p99": percentile(every, 0.99), "longest": round(max(every), 3)},
        "classes": classes(found),
        "placed_per_second": round(rate, 1),
        "cpu_ms_per_job": {name: round(1e3 * each / len(every), 2) for name, each in used.items()},
    }


async def advertise(connection: asyncpg.Connection) -> None:
    """Store ads of elements between 4 and 388 slots, the larger ones slower."""
    for n in range(ELEMENTS):
        slots = 4 + 32 * n
        element = ComputingElement(
            site=f"site-{n}", ce="ce", slots=slots, max_cpu_time=10**6, setup="default"
        )
        load = {
            "GlueCEStateFreeJobSlots": slots // 2,
            "GlueCEStateWaitingJobs": n,
            "GlueCEStateRunningJobs": slots // 2,
        }
        told = load | {"GlueHostBenchmarkSI00": 2_000 - 100 * n}
        await connection.execute(
            AD, element.site, msgspec.json.encode(element).decode(), msgspec.json.encode(told).decode()
        )


async def one(client: Client, connection: asyncpg.Connection) -> float:
    """Submit one job; return the seconds until it is placed."""
    began = time.perf_counter()
    submission = await client.submit([JOB])
    await placed(connection, submission.ids[0], 1)
    return time.perf_counter() - began


async def many(client: Client, connection: asyncpg.Connection, count: int) -> float:
    """Submit so many jobs, each by itself, all at once; return how many were placed a second."""
    began = time.perf_counter()
    submissions = await asyncio.gather(*(client.submit([JOB]) for _ in range(count)))
    ids = [low for each in submissions for low, _ in each.ids]
    await placed(connection, (min(ids), max(ids)), count)
    return count / (time.perf_counter() - began)


async def placed(connection: asyncpg.Connection, ids: tuple[int, int], count: int) -> None:
    began = time.perf_counter()
    while (found := await connection.fetchval(WAITING, *ids)) != count:
        if time.perf_counter() - began > PLACED_WITHIN:
            raise InvalidError(f"{found} of {count} jobs are placed")
        await asyncio.sleep(0.002)


def classes(found: list[list[float]]) -> dict[str, list[float]]:
    """Return for each class the average, the least and the greatest share of the sets, in percent."""
    told = {}
    for low, high in pairwise(CLASSES):
        shares = [100 * sum(low <= each < high for each in some) / len(some) for some in found]
        told[f"{low:g}-{high:g} s"] = [round(sum(shares) / len(shares), 1), min(shares), max(shares)]
    return told


if __name__ == "__main__":
    run("brokering", measure, jobs=200, sets=5, at_once=400)
