"""The two tables and the throughput test of Elmroth and Tordsson's broker, against real Slurm clusters and an ARC element.

python -m bench.brokering_tables [--jobs N] [--sets N] [--together N] [--clients N] [--reservations without|with|both] [--json]

As there: twelve resources, four index servers, one above the others, whose answers are used for 30 s. A client submits a job once the one
before is at its element, that is in the hands of its batch system; sets of 200 jobs are counted in five classes of seconds, without and
with reservations. Then many clients submit at once. Every job names the upper index server. Slurm makes real reservations; ARC has none, so
that the agreement service keeps a calendar of slots for its queues. The system, Slurm and ARC share the cores: batch jobs therefore do
nothing. Needs root, and the packages of `make testbed-install`.
"""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import NamedTuple

import asyncpg
from msgspec.structs import replace

from bench.brokering_grid import (
    ARC,
    CLUSTERS,
    PLACES,
    BatchSystems,
    IndexServer,
    batch_systems,
    index_servers,
    join,
    start_services,
)
from bench.measuring import Cpu, Figures, machine, median, percentile, postgres_version, run, system
from bench.validity import InvalidError
from wms.client import Client, JobDescription, select
from wms.embedded.system import System
from wms.ids import CeId
from wms.jobdesc.preferences import JobBenchmark, JobPreferences

CLASSES = {
    "without": (0.0, 2.0, 5.0, 8.0, 11.0, float("inf")),
    "with": (0.0, 7.0, 10.0, 13.0, 16.0, float("inf")),
}
"""The bounds, in seconds, of the classes of the two tables."""
LOOK_SECONDS = 0.01
PLACED_WITHIN = 180.0
CLEARED_WITHIN = 180.0
ARRIVED = """
    select j.job_id, j.state, p.state as placed, p.attempt, p.rank, p.site, p.ce, p.pilot_id, p.agreement_id, p.reservation,
        p.reason_text, extract(epoch from p.created_at)::float8 as placed_at
    from job j left join placement p using (job_id)
    where j.job_id = any ($1::bigint[]) and (p.state <> 'Ordered' or j.state in ('Held', 'Failed'))"""
LIVING = "select count(*) from pilot where ended_at is null"
OPEN = "select count(*) from agreement where state in ('Requested', 'Temporary', 'Confirmed')"
WHY_NOT = """
    select j.state, r.phase, r.reason, r.reason_text, p.state as placed
    from job j left join job_record r using (job_id) left join placement p using (job_id) where job_id = $1"""

JOB = JobDescription(executable="sim", cpu_time=900, wall_time=900)
KNOWN = (JobBenchmark(name="SI00", result=1_000, seconds=800),)


class Arrival(NamedTuple):
    """A job at its element: the seconds from its submission until it was placed, and until its batch system had it."""

    job_id: int
    place: CeId
    pilot: str
    agreement: str
    reservation: str
    placed: float
    seconds: float


class Arrivals:
    """Tells when jobs are at their elements. Raises InvalidError for one whose first placement fails."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._awaited: dict[int, asyncio.Future[asyncpg.Record]] = {}

    async def of(self, job_id: int) -> asyncpg.Record:
        """Wait for a job."""
        self._awaited[job_id] = asyncio.get_running_loop().create_future()
        try:
            return await asyncio.wait_for(self._awaited[job_id], PLACED_WITHIN)
        except TimeoutError:
            why = await self._pool.fetchrow(WHY_NOT, job_id)
            raise InvalidError(f"a job did not come to its element: {dict(why or {})}") from None

    async def watch(self) -> None:
        """Look again and again."""
        while True:
            for each in await self._pool.fetch(ARRIVED, list(self._awaited)) if self._awaited else []:
                self._settle(self._awaited.pop(each["job_id"]), each)
            await asyncio.sleep(LOOK_SECONDS)

    def _settle(self, awaited: asyncio.Future[asyncpg.Record], found: asyncpg.Record) -> None:
        if awaited.done():
            return
        if found["placed"] in ("Sent", "Started") and found["attempt"] == 1:
            awaited.set_result(found)
        else:
            awaited.set_exception(InvalidError(f"a job did not come to its element: {dict(found)}"))


class Bench(NamedTuple):
    """The system that is measured, and what it sends jobs to."""

    running: System
    batch: BatchSystems
    clients: Sequence[Client]
    pool: asyncpg.Pool
    arrivals: Arrivals
    job: JobDescription
    reserving: bool


# --- measuring ------------------------------------------------------------------------------------


async def measure(jobs: int, sets: int, together: int, clients: int, reservations: str) -> Figures:
    kinds = [each for each in CLASSES if reservations in (each, "both")]
    figures: Figures = {}
    with batch_systems() as batch:
        async with index_servers(batch) as servers:
            for kind in kinds:
                about, figures[kind] = await table(
                    batch, servers, kind, jobs=jobs, sets=sets, together=together, clients=clients
                )
    return {"machine": about, "resources": len(PLACES), "index_servers": len(servers), **figures}


async def table(
    batch: BatchSystems,
    servers: Sequence[IndexServer],
    kind: str,
    *,
    jobs: int,
    sets: int,
    together: int,
    clients: int,
) -> tuple[Figures, Figures]:
    """Measure sets of jobs one by one, and many together; return what the figures depend on, and the figures."""
    async with bench(batch, servers[0].url, clients, reserving=kind == "with") as one:
        about = machine(await postgres_version(one.running))
        await submit(one, one.clients[0])
        await clear(one)
        asked = sum(each.asked for each in servers)
        cpu, began = Cpu(one.running), time.perf_counter()
        found = [await one_by_one(one, jobs) for _ in range(sets)]
        used, lasted = cpu.used(), time.perf_counter() - began
        asked = sum(each.asked for each in servers) - asked
        throughput = await many(one, together)
    every = [each for some in found for each in some]
    seconds = [each.seconds for each in every]
    return about, {
        "seconds": {
            "median": median(seconds),
            "p99": percentile(seconds, 0.99),
            "longest": round(max(seconds), 3),
        },
        "placed_seconds": {"median": median([each.placed for each in every])},
        "classes": classes([[each.seconds for each in some] for some in found], CLASSES[kind]),
        "together": throughput,
        "places": dict(Counter("/".join(each.place) for each in every).most_common()),
        "reserved": sum(bool(each.agreement) for each in every),
        "index_servers_asked": asked,
        "cpu_ms_per_job": {name: round(1e3 * each / len(every), 2) for name, each in used.items()},
        "elapsed_seconds": round(lasted, 1),
        "load": round(os.getloadavg()[1], 1),
    }


@asynccontextmanager
async def bench(batch: BatchSystems, index: str, count: int, *, reserving: bool) -> AsyncIterator[Bench]:
    """Bring up a system over the batch systems, and connect so many clients; each job names this index server."""
    async with system(services=("job_manager", "matcher")) as running:
        await start_services(running, batch, reserving=reserving)
        join(running)
        assert running.facts is not None
        pool = await asyncpg.create_pool(running.facts.postgres_url, min_size=1, max_size=2)
        arrivals = Arrivals(pool)
        watch = asyncio.create_task(arrivals.watch())
        clients = [Client.connect(running.layout.root, timeout=600) for _ in range(count)]
        wishes = JobPreferences(benchmarks=KNOWN, reservation=reserving)
        job = replace(JOB, preferences=wishes, index_servers=(index,))
        try:
            connected = [await each.__aenter__() for each in clients]
            yield Bench(running, batch, connected, pool, arrivals, job, reserving)
        finally:
            watch.cancel()
            for each in clients:
                await each.__aexit__(None, None, None)
            await pool.close()


async def submit(one: Bench, client: Client) -> Arrival:
    """Submit a job and wait until it is at its element."""
    began, at = time.perf_counter(), time.time()
    submission = await client.submit([one.job])
    found = await one.arrivals.of(submission.ids[0][0])
    return Arrival(
        job_id=found["job_id"],
        place=CeId(found["site"], found["ce"]),
        pilot=found["pilot_id"],
        agreement=found["agreement_id"] or "",
        reservation=found["reservation"],
        placed=found["placed_at"] - at,
        seconds=time.perf_counter() - began,
    )


async def one_by_one(one: Bench, count: int) -> list[Arrival]:
    """Submit jobs, each once the one before is at its element."""
    found = [await submit(one, one.clients[0]) for _ in range(count)]
    await check(one, found)
    seconds = [each.seconds for each in found]
    sys.stderr.write(f"a set of {count}: median {median(seconds)} s, longest {max(seconds):.2f} s\n")
    await clear(one)
    return found


async def many(one: Bench, count: int) -> Figures:
    """Let all clients submit at once, each job by itself; return how many came to elements a second."""
    cpu, began = Cpu(one.running), time.perf_counter()
    some = [submit(one, one.clients[n % len(one.clients)]) for n in range(count)]
    found = await asyncio.gather(*some)
    lasted, used = time.perf_counter() - began, cpu.used()
    await check(one, found)
    await clear(one)
    return {
        "jobs": count,
        "submitted_per_second": round(count / lasted, 1),
        "reserved": sum(bool(each.agreement) for each in found),
        "placed_within_seconds": round(max(each.placed for each in found), 2),
        "cpu_ms_per_job": {name: round(1e3 * each / count, 2) for name, each in used.items()},
    }


# --- checking -------------------------------------------------------------------------------------


async def check(one: Bench, found: Sequence[Arrival]) -> None:
    """Raise InvalidError unless the batch system of each job has it, and lists its reservation if it has one.

    A job that no site answered in time is placed without one: the figures count those with one.
    """
    for each in found:
        if each.place not in PLACES or (each.agreement and not one.reserving):
            raise InvalidError(f"placed at the wrong element, or with an agreement that nobody wants: {each}")
    for site, clusters in CLUSTERS.items():
        for ce in clusters:
            there = [each for each in found if each.place == (site, ce)]
            await _check_cluster(one, ce, there)
    slots = sum(each.place.site == ARC for each in found)
    if slots and (faults := await one.pool.fetchval(ARC_FAULTS)):
        raise InvalidError(f"{faults} of {slots} pilots have no number at the ARC element")


ARC_FAULTS = f"select count(*) from pilot where site = '{ARC}' and reference = '' and ended_at is null"


async def _check_cluster(one: Bench, cluster: str, there: Sequence[Arrival]) -> None:
    listed = await one.batch.jobs(cluster)
    if lost := {each.pilot for each in there} - listed:
        raise InvalidError(f"{cluster} does not list {len(lost)} of {len(there)} jobs")
    reserved = await one.batch.reservations(cluster)
    if lost := {each.reservation for each in there if each.agreement} - reserved:
        raise InvalidError(f"{cluster} does not list {len(lost)} reservations, such as {min(lost)!r}")


async def clear(one: Bench) -> None:
    """Kill all jobs; raise InvalidError unless then nothing is left in the batch systems within some time."""
    await one.clients[0].kill(select(everything=True))
    deadline = time.monotonic() + CLEARED_WITHIN
    while left := await _left(one):
        if time.monotonic() > deadline:
            raise InvalidError(f"left behind by jobs that were killed: {left}")
        await asyncio.sleep(0.5)


async def _left(one: Bench) -> str:
    pilots = await one.pool.fetchval(LIVING)
    agreements = await one.pool.fetchval(OPEN) if one.reserving else 0
    reservations = await one.batch.all_reservations() if not (pilots or agreements) else set()
    left = {"pilots": pilots, "agreements": agreements, "reservations": len(reservations)}
    return ", ".join(f"{count} {name}" for name, count in left.items() if count)


def classes(found: Sequence[Sequence[float]], bounds: Sequence[float]) -> dict[str, list[float]]:
    """Return for each class the average, the least and the greatest share of the sets, in percent."""
    told = {}
    for low, high in pairwise(bounds):
        shares = [100 * sum(low <= each < high for each in some) / len(some) for some in found]
        told[f"{low:g}-{high:g} s"] = [round(sum(shares) / len(shares), 1), min(shares), max(shares)]
    return told


if __name__ == "__main__":
    run("brokering_tables", measure, jobs=200, sets=5, together=400, clients=20, reservations="both")
