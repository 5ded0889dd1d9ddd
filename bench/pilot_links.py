"""Matches a second of pilots that come through the gateway over HTTPS, beside pilots that speak to Kafka, in turn.

python -m bench.pilot_links [--pilots N] [--processes N] [--slots N] [--seconds N] [--rounds N] [--broker embedded|apache] [--json]

Both kinds are played by the same number of processes, each with many pilots. A pilot asks for jobs for all its slots, and asks again once
it has the offer. Each kind has a site of its own, so that it reads the offers to its own pilots alone.
"""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import get_args

import asyncpg
import msgspec

from bench.gateway_users import certificate
from bench.link_pilots import LinkKind, Outcome, Task
from bench.measuring import Cpu, Figures, machine, percentile, postgres_version, read_line, run, system
from bench.rounds import ratio
from bench.stock import Stock
from bench.validity import InvalidError
from wms.client.settings import read_settings
from wms.db import pilot
from wms.db.database import Database
from wms.db.pilot import NewPilot
from wms.embedded.keys_and_tokens import VO
from wms.embedded.system import System
from wms.ids import PilotId

KINDS: tuple[LinkKind, ...] = get_args(LinkKind)
QUEUES = 400
WARM_SECONDS = 1.0
SPARE = 1.5
"""Jobs that wait for each that a round takes if it goes on as the one before."""
LINE_LIMIT = 64 * 1024 * 1024
FREE = str(10**6)
ENVIRONMENT = {
    "WMS_REQUESTS__PILOT_PER_SECOND": FREE, "WMS_REQUESTS__PILOT_BURST": FREE,
    "WMS_REQUESTS__SITE_ADDRESS_PER_SECOND": FREE, "WMS_REQUESTS__SITE_ADDRESS_BURST": FREE,
}  # fmt: skip
"""All pilots come from one address, and ask as fast as they are answered."""


class Side:
    """The pilots of one kind of link, in several processes, and what their rounds brought."""

    def __init__(self, running: System, stock: Stock, tasks: Sequence[Task]) -> None:
        self._running = running
        self._stock = stock
        self._tasks = tasks
        self._processes: list[asyncio.subprocess.Process] = []
        self.kind = tasks[0].link
        self.site = tasks[0].site
        self.pilot_ids: list[PilotId] = []
        self.offered = 0
        self.rounds: list[Figures] = []

    async def start(self) -> None:
        """Start the processes; return once their pilots are attached and in the database."""
        for task in self._tasks:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bench.link_pilots",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE_LIMIT,
            )  # fmt: skip
            self._processes.append(process)
            _say(process, msgspec.json.encode(task))
        for process in self._processes:
            line = await read_line(process, "pilots could not attach")
            self.pilot_ids += msgspec.json.decode(line, type=list[PilotId])
        await _write_down(self._running, self)

    async def work(self, seconds: float, jobs: int) -> Figures:
        """Let all pilots ask for so long, while at least so many jobs wait; return what came of it."""
        await self._stock.fill(self.site, jobs)
        cpu = Cpu(self._running)
        for process in self._processes:
            _say(process, b"%g" % seconds)
        lines = await asyncio.gather(*(read_line(each, "pilots failed") for each in self._processes))
        used = cpu.used()
        outcomes = [msgspec.json.decode(line, type=Outcome) for line in lines]
        jobs = sum(each.jobs for each in outcomes)
        self.offered += jobs + sum(each.late for each in outcomes)
        self._stock.took(self.site, jobs + sum(each.late for each in outcomes))
        times = [each for outcome in outcomes for each in outcome.milliseconds]
        if not times:
            raise InvalidError(f"no offer came within {seconds:g} s")
        return {
            "matches_per_second": round(jobs / seconds),
            "requests_per_second": round(len(times) / seconds),
            "offer_p50_ms": percentile(times, 0.5),
            "offer_p99_ms": percentile(times, 0.99),
            "cpu_us_per_request": {
                name: round(1e6 * spent / len(times), 1)
                for name, spent in used.items()
                if name != "benchmark"
            },
        }

    async def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def measure(pilots: int, processes: int, slots: int, seconds: int, rounds: int, broker: str) -> Figures:
    async with opened(pilots, processes, slots, broker) as (running, sides):
        about = {**machine(await postgres_version(running)), "broker": broker}
        expected = {side.kind: 2_000 * slots for side in sides}
        for wanted in (WARM_SECONDS, *[float(seconds)] * rounds):
            for side in sides:
                found = await side.work(wanted, round(SPARE * wanted * expected[side.kind]))
                expected[side.kind] = max(found["matches_per_second"], expected[side.kind])
                if wanted != WARM_SECONDS:
                    side.rounds.append(found)
        for side in sides:
            await check(running, side)
    rates = [[float(each["matches_per_second"]) for each in side.rounds] for side in sides]
    return {
        "machine": about,
        **{side.kind: side.rounds for side in sides},
        "https_to_kafka": ratio(rates[0], rates[1]),
    }


@contextlib.asynccontextmanager
async def opened(
    pilots: int, processes: int, slots: int, broker: str
) -> AsyncIterator[tuple[System, list[Side]]]:
    """Bring up a system whose gateway speaks HTTPS, and attach the pilots of both kinds."""
    with tempfile.TemporaryDirectory(prefix="wms-bench-tls-") as place:
        authority, private = certificate(Path(place))
        files = {"WMS_GATEWAY__CERTIFICATE": str(authority), "WMS_GATEWAY__PRIVATE_KEY": str(private)}
        async with system({"gateway": ENVIRONMENT | files}, kafka=broker) as running:
            assert running.facts is not None
            common = Task(
                link="https",
                gateway=f"https://127.0.0.1:{running.facts.gateway_port}",
                authority=str(authority),
                kafka=read_settings(running.layout.root, {}).kafka,
                key=str(running.layout.keys / "pilots.pem"),
                site="",
                vo=VO,
                pilots=pilots // processes,
                slots=slots,
            )
            stock = Stock(running, QUEUES)
            tasks = [msgspec.structs.replace(common, link=kind, site=f"bench-{kind}") for kind in KINDS]
            sides = [Side(running, stock, [task] * processes) for task in tasks]
            try:
                for side in sides:
                    await side.start()
                yield running, sides
            finally:
                for side in sides:
                    await side.close()


async def _write_down(running: System, side: Side) -> None:
    """Write the pilots into the database: others are offered nothing."""
    assert running.facts is not None
    db = await Database.connect(running.facts.postgres_url, size=1, application="bench")
    try:
        async with db.transaction() as tx:
            await pilot.insert(
                tx,
                [
                    NewPilot(pilot_id=each, site=side.site, ce="bench", vo=VO, dispatcher="none", slots=1)
                    for each in side.pilot_ids
                ],
            )
    finally:
        await db.close()


async def check(running: System, side: Side) -> None:
    """Raise InvalidError unless the pilots were offered exactly the jobs that the database says they hold, each once."""
    assert running.facts is not None
    connection = await asyncpg.connect(running.facts.postgres_url)
    try:
        held = await connection.fetchval(
            "select count(*) from lease where pilot_id = any ($1::text[])", side.pilot_ids
        )
    finally:
        await connection.close()
    if held != side.offered:
        raise InvalidError(f"{side.kind}: {side.offered} jobs were offered, {held} are held")


def _say(process: asyncio.subprocess.Process, line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line + b"\n")


if __name__ == "__main__":
    run(
        "pilot_links", measure, pilots=256, processes=2, slots=16, seconds=5, rounds=5, broker="embedded"
    )  # fmt: skip
