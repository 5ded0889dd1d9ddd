"""How fast jobs are given away through the broker, all services running: request to offer, and whole lives of jobs.

python -m bench.brokered [--jobs N] [--queues N] [--seconds N] [--rate N] [--broker embedded|apache] [--json]

Without --rate: whole lives, 50 and 5,000 requests a second, and as many as there can be, of one slot and of sixteen; and of
sixteen once more where all jobs wait in sweeps, so that they have no rows yet.
"""

import asyncio
from collections.abc import Awaitable, Callable

from bench.load import Load
from bench.measuring import Cpu, Figures, machine, postgres_version, run, system
from wms.auth.keys import load_key
from wms.bus.kafka import Kafka
from wms.client import Client, JobDescription, read_settings
from wms.db import pilot
from wms.db.database import Database
from wms.db.pilot import NewPilot
from wms.embedded.identity import VO
from wms.embedded.system import System

SITE, OF_SWEEPS = "bench", "bench-of-sweeps"
IN_FLIGHT = 4_096
"""Jobs that are asked for at once, at saturation."""
LIVES = 8_192
"""The same of whole lives, of which each goes the way through the broker three times."""

AT_REST, AT_REST_WITHIN_SECONDS = 0.3, 90
"""Of a processor, that the services use when nothing is to be done."""

WARM_SECONDS = 1.0
"""Of the same rate before what is counted: what the first requests of new pilots wait for is not what the others do."""

Drive = Callable[[Load, float], Awaitable[Figures]]


def at_rate(rate: int) -> Drive:
    async def drive(load: Load, seconds: float) -> Figures:
        return {"rate": rate, **await load.at_rate(rate, seconds)}

    return drive


def saturate(slots: int, jobs: int) -> Drive:
    async def drive(load: Load, seconds: float) -> Figures:
        return {"in_flight": jobs // slots, **await load.saturate(jobs // slots, seconds)}

    return drive


async def measure(jobs: int, queues: int, seconds: int, rate: int, broker: str) -> Figures:
    async with system(kafka=broker) as running:
        about = {**machine(await postgres_version(running)), "broker": broker}
        await fill(running, jobs, queues)
        await at_rest(running)
        kafka = Kafka(read_settings(running.layout.root, {}).kafka, "bench")
        await kafka.start()
        try:
            if rate:
                found = {"requests": await rated(running, kafka, rate, seconds)}
            else:
                found = await series(running, kafka, seconds)
        finally:
            await kafka.close()
    return {"machine": about, "waiting_jobs": jobs, "task_queues": queues, **found}


async def series(running: System, kafka: Kafka, seconds: int) -> dict[str, Figures]:
    """Measure all. How long one waits first, before there is much to clean up behind."""
    return {
        "rate_50": await rated(running, kafka, 50, seconds),
        "rate_5000": await rated(running, kafka, 5_000, seconds),
        "lives": await one(running, kafka, 16, saturate(16, LIVES), seconds, lives=True),
        "lives_one_by_one": await one(running, kafka, 1, saturate(1, LIVES), seconds, lives=True),
        "saturated": await one(running, kafka, 1, saturate(1, IN_FLIGHT), seconds),
        "saturated_16_slots": await one(running, kafka, 16, saturate(16, IN_FLIGHT), seconds),
        "saturated_sweeps": await one(running, kafka, 16, saturate(16, IN_FLIGHT), seconds, site=OF_SWEEPS),
    }


async def fill(running: System, jobs: int, queues: int) -> None:
    """Let that many jobs wait in that many task queues, which differ in a site that is not the benchmark's; a third as many in sweeps."""
    single = [
        JobDescription(executable="true", sites=(SITE, f"other-{n % queues}"), cpu_time=600)
        for n in range(jobs)
    ]
    sweeps = [
        JobDescription(
            executable="true", sites=(OF_SWEEPS, f"other-{n}"), cpu_time=600, array=jobs // queues // 3
        )
        for n in range(queues)
    ]
    async with Client.connect(running.layout.root, timeout=300) as client:
        await client.submit(single)
        await client.submit(sweeps)


async def at_rest(running: System) -> None:
    """Wait until the services have looked at all that came, and Postgres has cleaned up."""
    for _ in range(AT_REST_WITHIN_SECONDS):
        cpu = Cpu(running)
        await asyncio.sleep(1)
        used = cpu.used()
        if sum(used.values()) - used["benchmark"] < AT_REST:
            return


async def rated(running: System, kafka: Kafka, rate: int, seconds: int) -> Figures:
    """Let requests of one slot come so many a second, for a while before they are counted."""
    return await one(running, kafka, 1, at_rate(rate), seconds, warm_seconds=WARM_SECONDS)


async def _write_down(running: System, load: Load, *, site: str, slots: int) -> None:
    assert running.facts is not None
    db = await Database.connect(running.facts.postgres_url, size=1, application="bench")
    pilots = [
        NewPilot(pilot_id=each, site=site, ce="bench", vo=VO, dispatcher="none", slots=slots)
        for each in load.pilot_ids
    ]
    async with db.transaction() as tx:
        await pilot.insert(tx, pilots)
    await db.close()


async def one(
    running: System,
    kafka: Kafka,
    slots: int,
    drive: Drive,
    seconds: int,
    *,
    lives: bool = False,
    site: str = SITE,
    warm_seconds: float = 0.0,
) -> Figures:
    """Let one load run for so many seconds, after some that are not counted, and say what each program used of the cores."""
    key = load_key(running.layout.keys / "pilots.pem")
    async with Load(kafka, key, site=site, vo=VO, slots=slots, lives=lives) as load:
        await _write_down(running, load, site=site, slots=slots)
        if warm_seconds:
            await drive(load, warm_seconds)
            load.count_anew()
        cpu = Cpu(running)
        figures = await drive(load, seconds)
        used = cpu.used()
    return {
        "slots": slots,
        **figures,
        "cpu_us_per_match": {name: round(1e6 * spent / max(1, load.jobs), 1) for name, spent in used.items()},
    }


if __name__ == "__main__":
    run("brokered", measure, jobs=400_000, queues=400, seconds=5, rate=0, broker="embedded")
