"""How fast jobs are given away through the broker, all services running: request to offer, and whole lives of jobs.

python -m bench.brokered [--jobs N] [--queues N] [--seconds N] [--rate N] [--broker embedded|apache] [--json]

Without --rate: whole lives, 50 and 5,000 requests a second, and as many as there can be, of one slot and of sixteen; and of
sixteen once more where all jobs wait in sweeps, so that they have no rows yet.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bench.load import Load
from bench.measuring import Cpu, Figures, machine, postgres_version, run, system
from bench.stock import OF_SWEEPS, SITE, Stock
from wms.auth.keys import load_key
from wms.bus.kafka import Kafka
from wms.client import read_settings
from wms.db import pilot
from wms.db.database import Database
from wms.db.pilot import NewPilot
from wms.embedded.keys_and_tokens import VO
from wms.embedded.system import System

IN_FLIGHT = 4_096
"""Jobs that are asked for at once, at saturation."""
LIVES = 8_192
"""The same of whole lives, of which each goes the way through the broker three times."""

WARM_SECONDS = 1.0
"""Of the same rate before what is counted: what the first requests of new pilots wait for is not what the others do."""

SPARE = 1.5
"""Jobs that wait for each that a load takes if it goes on as in its first second."""

Drive = Callable[[Load, float], Awaitable[Figures]]


def at_rate(rate: int) -> Drive:
    async def drive(load: Load, seconds: float) -> Figures:
        return {"rate": rate, **await load.at_rate(rate, seconds)}

    return drive


def saturate(slots: int, jobs: int) -> Drive:
    async def drive(load: Load, seconds: float) -> Figures:
        return {"in_flight": jobs // slots, **await load.saturate(jobs // slots, seconds)}

    return drive


class Bench(NamedTuple):
    """The system that is measured, and how many jobs are to wait in it."""

    running: System
    kafka: Kafka
    stock: Stock
    jobs: int


async def measure(jobs: int, queues: int, seconds: int, rate: int, broker: str) -> Figures:
    async with system(kafka=broker) as running:
        about = {**machine(await postgres_version(running)), "broker": broker}
        kafka = Kafka(read_settings(running.layout.root, {}).kafka, "bench")
        await kafka.start()
        bench = Bench(running, kafka, Stock(running, queues), jobs)
        try:
            if rate:
                found = {"requests": await one(bench, 1, at_rate(rate), seconds)}
            else:
                found = await series(bench, seconds)
        finally:
            await kafka.close()
    return {"machine": about, "waiting_jobs": jobs, "task_queues": queues, **found}


async def series(bench: Bench, seconds: int) -> dict[str, Figures]:
    """Measure all. How long one waits first, before there is much to clean up behind."""
    return {
        "rate_50": await one(bench, 1, at_rate(50), seconds),
        "rate_5000": await one(bench, 1, at_rate(5_000), seconds),
        "lives": await one(bench, 16, saturate(16, LIVES), seconds, lives=True),
        "lives_one_by_one": await one(bench, 1, saturate(1, LIVES), seconds, lives=True),
        "saturated": await one(bench, 1, saturate(1, IN_FLIGHT), seconds),
        "saturated_16_slots": await one(bench, 16, saturate(16, IN_FLIGHT), seconds),
        "saturated_sweeps": await one(bench, 16, saturate(16, IN_FLIGHT), seconds, site=OF_SWEEPS),
    }


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
    bench: Bench, slots: int, drive: Drive, seconds: int, *, lives: bool = False, site: str = SITE
) -> Figures:
    """Let one load run for so many seconds, after some that are not counted, and say what each program used of the cores.

    As many jobs wait at its begin as were asked for, or half as many again as it will take at the rate of its first second.
    """
    key = load_key(bench.running.layout.keys / "pilots.pem")
    await bench.stock.fill(site, bench.jobs)
    async with Load(bench.kafka, key, site=site, vo=VO, slots=slots, lives=lives) as load:
        await _write_down(bench.running, load, site=site, slots=slots)
        warm = await drive(load, WARM_SECONDS)
        bench.stock.took(site, load.jobs)
        load.count_anew()
        wanted = int(SPARE * warm["matches_per_second"] * seconds)
        await bench.stock.fill(site, max(bench.jobs, wanted))
        cpu = Cpu(bench.running)
        figures = await drive(load, seconds)
        used = cpu.used()
        bench.stock.took(site, load.jobs)
    return {
        "slots": slots,
        **figures,
        "cpu_us_per_match": {name: round(1e6 * spent / max(1, load.jobs), 1) for name, spent in used.items()},
    }


if __name__ == "__main__":
    run("brokered", measure, jobs=400_000, queues=400, seconds=5, rate=0, broker="embedded")
