"""How fast jobs are accepted: separate descriptions, an array, a list of values; through the client and the broker, durable.

python -m bench.submission [--jobs N] [--queues N] [--runs N] [--json]

With a million jobs one run is enough: `--jobs 1000000 --runs 1`.
"""

import asyncio
import time

import asyncpg

from bench.measuring import Cpu, Figures, machine, median, postgres_version, run, system
from bench.validity import InvalidError
from wms.client import Client, JobDescription
from wms.embedded.system import System

WAITING = "select (health->>'waiting')::bigint from service_instance where service = 'matcher'"


INDEXED_WITHIN = 120.0
"""Seconds after the last acceptance in which the matcher's index must hold the jobs, and tell so by its heartbeat."""


async def measure(jobs: int, queues: int, runs: int) -> Figures:
    separate = [
        JobDescription(
            executable="sim",
            arguments=(str(n),),
            name=f"sim-{n}",
            cpu_time=600,
            sites=(f"site-{n % queues}",),
        )
        for n in range(jobs)
    ]
    array = JobDescription(executable="sim", arguments=("{n}",), name="sim-{n}", cpu_time=600, array=jobs)
    listed = JobDescription(
        executable="sim", arguments=("{file}",), cpu_time=600,
        parameters={"file": tuple(f"run-{n:07d}.root" for n in range(jobs))},
    )  # fmt: skip
    async with system(services=("job_manager", "matcher")) as running:
        about = machine(await postgres_version(running))
        async with Client.connect(running.layout.root, timeout=600) as client:
            await client.submit(separate[:100])
            await indexed(running, min(100, jobs))
            cpu = Cpu(running)
            one = [await accepted(client, separate) for _ in range(runs)]
            late = await indexed(running, min(100, jobs) + runs * jobs)
            used = cpu.used()
            other = [await accepted(client, array) for _ in range(runs)]
            third = [await accepted(client, listed) for _ in range(runs)]
    return {
        "machine": about,
        "separate": figures(jobs, one),
        "array": figures(jobs, other),
        "list": figures(jobs, third),
        # Told by a heartbeat, so that it is a second or two less in truth.
        "indexed_seconds_after": round(late, 1),
        "cpu_us_per_separate_job": {name: round(1e6 * each / runs / jobs, 1) for name, each in used.items()},
    }


async def accepted(client: Client, descriptions: JobDescription | list[JobDescription]) -> float:
    """Submit and return the seconds until all are taken: then they are in the database, on its disk."""
    began = time.perf_counter()
    await client.submit(descriptions)
    return time.perf_counter() - began


async def indexed(running: System, jobs: int) -> float:
    """Wait until the matcher's index holds so many jobs; return the seconds that took."""
    assert running.facts is not None
    began = time.perf_counter()
    connection = await asyncpg.connect(running.facts.postgres_url)
    try:
        while (found := await connection.fetchval(WAITING)) != jobs:
            if time.perf_counter() - began > INDEXED_WITHIN:
                raise InvalidError(f"the matcher's index holds {found} of {jobs} jobs")
            await asyncio.sleep(0.1)
    finally:
        await connection.close()
    return time.perf_counter() - began


def figures(jobs: int, seconds: list[float]) -> Figures:
    return {
        "seconds": median(seconds),
        "all_seconds": [round(each, 3) for each in seconds],
        "jobs_per_second": round(jobs / median(seconds)),
    }


if __name__ == "__main__":
    run("submission", measure, jobs=10_000, queues=100, runs=5)
