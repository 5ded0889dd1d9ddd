"""How fast waiting jobs are given away: matcher and job manager over the broker, to agents that run no process.

python -m bench.brokered [--jobs N] [--queues N] [--seconds N]
"""

import asyncio
import time

from bench.measuring import Cpu, Figures, machine, percentile, postgres_version, run, system
from bench.requester import Mailbox, Requester
from wms.auth.keys import load_key
from wms.bus.kafka import Kafka
from wms.client import Client, JobDescription, read_settings
from wms.embedded.identity import VO
from wms.embedded.system import System

SITE = "bench"
LOADS = ((1, 1), (8, 1), (32, 1), (128, 1), (512, 1), (8, 16), (32, 16), (128, 16))
"""Agents at once, and slots of each: a request asks for as many jobs."""


async def measure(jobs: int, queues: int, seconds: int) -> Figures:
    async with system(services=("job_manager", "matcher")) as running:
        about = machine(await postgres_version(running))
        await fill(running, jobs, queues)
        found = [await load(running, agents, slots, seconds) for agents, slots in LOADS]
    return {"machine": about, "waiting_jobs": jobs, "task_queues": queues, "loads": found}


async def fill(running: System, jobs: int, queues: int) -> None:
    """Let that many jobs wait in that many task queues, which differ in a site that is not the benchmark's."""
    each = [
        JobDescription(executable="true", sites=(SITE, f"other-{n}"), cpu_time=600, array=jobs // queues)
        for n in range(queues)
    ]
    async with Client.connect(running.layout.root, timeout=120) as client:
        await client.submit(each)


async def load(running: System, agents: int, slots: int, seconds: int) -> Figures:
    """Let agents ask for so many seconds."""
    kafka = Kafka(read_settings(running.layout.root, {}).kafka, "bench")
    await kafka.start()
    mailbox = Mailbox(kafka, SITE)
    await mailbox.open()
    key = load_key(running.layout.keys / "pilots.pem")
    requesters = [Requester(kafka, mailbox, key, site=SITE, vo=VO, slots=slots) for _ in range(agents)]
    cpu = Cpu(running)
    began = time.monotonic()
    try:
        await asyncio.gather(*(each.work(began + seconds) for each in requesters))
    finally:
        await mailbox.close()
        await kafka.close()
    passed = time.monotonic() - began
    waits = [wait for each in requesters for wait in each.seconds]
    return {
        "agents": agents,
        "slots": slots,
        "matches": sum(each.jobs for each in requesters),
        "matches_per_second": round(sum(each.jobs for each in requesters) / passed, 1),
        "offer_p50_seconds": percentile(waits, 0.5),
        "offer_p99_seconds": percentile(waits, 0.99),
        "cpu_seconds_a_second": {name: round(used / passed, 2) for name, used in cpu.used().items()},
    }


if __name__ == "__main__":
    run("brokered", measure, jobs=100_000, queues=200, seconds=10)
