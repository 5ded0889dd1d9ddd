"""How many zero-second jobs go through the whole system in a second: submitted, matched, run as processes, done.

python -m bench.end_to_end [--jobs N] [--slots N] [--runs N]
"""

import time
from datetime import datetime

from bench.measuring import Cpu, Figures, machine, median, postgres_version, run, system
from wms.cli.figures import quantile
from wms.client import Client, JobDescription, Submission
from wms.db import timeline
from wms.db.database import Database
from wms.embedded.system import System


async def measure(jobs: int, slots: int, runs: int) -> Figures:
    async with system(slots=slots) as running:
        about = machine(await postgres_version(running))
        async with Client.connect(running.layout.root) as client:
            await once(running, client, slots)  # the pilots are there from now on
            cpu = Cpu(running)
            found = [await once(running, client, jobs) for _ in range(runs)]
            used = cpu.used()
    return {
        "machine": about,
        "seconds": median([seconds for seconds, _ in found]),
        "jobs_per_second": median([jobs / seconds for seconds, _ in found]),
        "steady_jobs_per_second": median([rate for _, rate in found]),
        "all_seconds": [round(seconds, 2) for seconds, _ in found],
        # Pilots and payloads are what of the cores is not named here.
        "cpu_seconds_a_run": {name: round(seconds / runs, 2) for name, seconds in used.items()},
    }


async def once(running: System, client: Client, jobs: int) -> tuple[float, float]:
    """Run jobs; return the seconds that all took, and the jobs a second from the tenth hundredth to the ninetieth."""
    began = time.perf_counter()
    submitted = await client.submit(JobDescription(executable="true", cpu_time=60, array=jobs))
    counts = await client.wait(submitted.selector(), timeout=300)
    passed = time.perf_counter() - began
    assert counts == {"Done": jobs}, counts
    ends = [
        (end - min(found)).total_seconds() for found in [await ended(running, submitted)] for end in found
    ]
    ends.sort()
    early, late = quantile(ends, 0.1), quantile(ends, 0.9)
    return passed, 0.8 * jobs / max(0.001, late - early)


async def ended(running: System, submitted: Submission) -> list[datetime]:
    """Return when the jobs ended, by the database's clock."""
    assert running.facts is not None
    db = await Database.connect(running.facts.postgres_url, size=1, application="bench")
    try:
        async with db.transaction() as tx:
            jobs = await timeline.of_ranges(tx, submitted.ids)
    finally:
        await db.close()
    return [job.ended_at for job in jobs if job.ended_at is not None]


if __name__ == "__main__":
    run("end_to_end", measure, jobs=1_000, slots=8, runs=3)
