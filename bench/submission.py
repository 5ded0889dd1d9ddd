"""How fast jobs are accepted: as separate descriptions and as an array, through the client and the broker, durable.

python -m bench.submission [--jobs N] [--runs N]
"""

import time

from bench.measuring import Cpu, Figures, machine, median, postgres_version, run, system
from wms.client import Client, JobDescription


async def measure(jobs: int, runs: int) -> Figures:
    separate = [
        JobDescription(executable="sim", arguments=(str(n),), name=f"sim-{n}", cpu_time=600)
        for n in range(jobs)
    ]
    array = JobDescription(executable="sim", arguments=("{n}",), name="sim-{n}", cpu_time=600, array=jobs)
    async with system(services=("job_manager", "matcher")) as running:
        about = machine(await postgres_version(running))
        async with Client.connect(running.layout.root) as client:
            await client.submit(separate[:100])
            cpu = Cpu(running)
            one = [await accepted(client, separate) for _ in range(runs)]
            used = cpu.used()
            other = [await accepted(client, array) for _ in range(runs)]
    return {
        "machine": about,
        "separate": figures(jobs, one),
        "array": figures(jobs, other),
        "goal_seconds": 2.0,
        "cpu_seconds_a_separate_run": {name: round(seconds / runs, 3) for name, seconds in used.items()},
    }


async def accepted(client: Client, descriptions: JobDescription | list[JobDescription]) -> float:
    """Submit and return the seconds until all are taken: then they are in the database, on its disk."""
    began = time.perf_counter()
    await client.submit(descriptions)
    return time.perf_counter() - began


def figures(jobs: int, seconds: list[float]) -> Figures:
    return {
        "seconds": median(seconds),
        "all_seconds": [round(each, 3) for each in seconds],
        "jobs_per_second": round(jobs / median(seconds)),
    }


if __name__ == "__main__":
    run("submission", measure, jobs=10_000, runs=5)
