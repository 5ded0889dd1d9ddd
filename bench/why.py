"""How fast a job is told why it waits, among very many others: through the broker, and the judgement by itself.

python -m bench.why [--jobs N] [--queues N] [--elements N] [--asks N] [--expressions N]

A third of the queues fit somewhere, the others lack memory, a tag or a site; every answer is checked against that. With expressions
jobs require so many different things of elements, which advertise ads of a usual size and require something of jobs; these
may keep any job from anywhere, so that only those that lack something are checked.
"""

import random
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from bench.expressions import make_elements, requirements
from bench.measuring import Cpu, Figures, machine, percentile, postgres_version, run, system
from bench.validity import InvalidError
from bench.workload import VO as WORKLOAD_VO
from bench.workload import Shape
from services.job_manager.queries.why import explain_job
from wms.client import Client, JobDescription
from wms.db import block, job
from wms.db.database import Database, Transaction
from wms.db.queue_stats import FADING_SECONDS, SILENT_SECONDS
from wms.db.queue_stats import SQL as QUEUE_SQL
from wms.db.read_model import SQL as VIEW_SQL
from wms.db.wait_reason import SQL as WAIT_SQL
from wms.embedded.keys_and_tokens import VO
from wms.ids import JobId
from wms.job.job import Job
from wms.matching.grouping import DEFAULT_SEGMENTS
from wms.messages.queries import WhyJob
from wms.site import ComputingElement

GOAL_SECONDS = 0.1
MEMORY_MB = (2_000, 4_000, 8_000)
LOOKED_SECONDS = 180.0
"""So long the services are given to look at all queues once."""


async def measure(jobs: int, queues: int, elements: int, asks: int, expressions: int) -> Figures:
    async with system(services=("job_manager", "matcher")) as running:
        about = machine(await postgres_version(running))
        assert running.facts is not None
        db = await Database.connect(running.facts.postgres_url, size=2, application="bench")
        try:
            await advertise(db, elements, saying=bool(expressions))
            async with Client.connect(running.layout.root, timeout=900) as client:
                filled = await fill(client, jobs, queues, expressions)
                looked = await looked_at(db, queues)
                chosen = random.Random(1).sample(range(len(filled)), asks)
                cpu = Cpu(running)
                through_broker = [
                    await asked(client, filled[n], kind_of(filled, n, jobs, queues), sure=not expressions)
                    for n in chosen
                ]
                used = cpu.used()
            alone, alone_cpu = await judged(db, [filled[n] for n in chosen])
            plans = await planned(db, filled[chosen[0]])
        finally:
            await db.close()
    return {
        "machine": about,
        "goal_seconds": GOAL_SECONDS,
        "seconds_until_all_were_looked_at": round(looked, 1),
        "through_the_broker": seconds(through_broker),
        "in_the_job_manager": seconds(alone),
        "cpu_seconds_of_a_judgement": round(alone_cpu / asks, 5),
        "cpu_seconds_a_question": {name: round(each / asks, 4) for name, each in used.items()},
        "milliseconds_of_statements": plans,
    }


def seconds(values: Sequence[float]) -> Figures:
    return {
        "p50_seconds": percentile(values, 0.5),
        "p99_seconds": percentile(values, 0.99),
        "most": max(values),
    }


async def advertise(db: Database, elements: int, *, saying: bool) -> None:
    """Let a hundred sites advertise themselves, a tenth of them no more, and two pilots run on every other element."""
    ads = [
        ComputingElement(
            site=f"site-{n % 100}",
            ce=f"ce-{n}",
            setup="default",
            slots=100,
            max_cpu_time=1_000_000 if n % 2 else 40_000,
            memory_mb=MEMORY_MB[n % 3],
            tags=(f"tag-{n % 7}",),
        )
        for n in range(elements)
    ]
    told = make_elements(Shape(), elements) if saying else []
    async with db.transaction() as tx:
        await tx.execute(
            "insert into ad (site, ce, element, advertised_at, expires_at, attributes, requirements)"
            " select a.site, a.ce, a.element::jsonb, now(), now() + case when a.n % 10 = 0 then '0 s' else '1 d' end::interval,"
            " a.attributes::jsonb, a.requirements"
            " from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) with ordinality"
            " as a(site, ce, element, attributes, requirements, n)",
            [each.site for each in ads],
            [each.ce for each in ads],
            [msgspec.json.encode(each).decode() for each in ads],
            [msgspec.json.encode(each.attributes).decode() for each in told] or ["{}"] * elements,
            [each.requirements.replace(WORKLOAD_VO, VO) for each in told] or [""] * elements,
        )
        await tx.execute(
            "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, busy, state)"
            " select 'p-' || a.n || '-' || k, a.site, a.ce, $3, 'none', 4, a.n % 5, 'Running'"
            " from unnest($1::text[], $2::text[]) with ordinality as a(site, ce, n), generate_series(1, 2) k"
            " where a.n % 2 = 0",
            [each.site for each in ads],
            [each.ce for each in ads],
            VO,
        )


async def fill(client: Client, jobs: int, queues: int, expressions: int) -> Sequence[int]:
    """Let so many jobs wait in so many queues: every third fits somewhere, expressions aside."""
    texts = requirements(expressions) or [""]
    each = [
        JobDescription(executable="true", array=jobs // queues, requirements=texts[n % len(texts)], **kind(n))
        for n in range(queues)
    ]
    return list((await client.submit(each)).job_ids())


def kind(number: int) -> dict[str, Any]:
    """Return what the jobs of a queue ask for."""
    there = (f"site-{number % 100}", f"other-{number}")
    match number % 3:
        case 0:
            return {"memory_mb": 1_000 + number % 900, "sites": there, "cpu_time": 600}
        case 1:
            return {"memory_mb": 10_000 + number, "tags": (f"tag-{number % 7}",), "cpu_time": 600}
        case _:
            return {"sites": (f"nowhere-{number}",), "cpu_time": 600}


def kind_of(filled: Sequence[int], n: int, jobs: int, queues: int) -> int:
    """Return which of the three kinds the n-th job is of."""
    assert len(filled) == jobs // queues * queues
    return n // (jobs // queues) % 3


async def looked_at(db: Database, queues: int) -> float:
    """Wait until every queue has a reason, and return the seconds it took."""
    began = time.perf_counter()
    while time.perf_counter() - began < LOOKED_SECONDS:
        async with db.transaction() as tx:
            if await tx.fetchval("select count(*) from wait_reason") == queues:
                return time.perf_counter() - began
            await tx.fetch("select pg_sleep(0.2)")
    raise InvalidError(f"not all of {queues} queues were looked at within {LOOKED_SECONDS:g} s")


async def asked(client: Client, job_id: int, kind_: int, *, sure: bool) -> float:
    """Ask why a job waits, check the answer, and return the seconds it took."""
    began = time.perf_counter()
    answer = await client.why(job_id)
    took = time.perf_counter() - began
    hopeless = answer.code == "NEVER_POSSIBLE"
    right = (
        hopeless == (kind_ > 0) and bool(answer.relaxations or not hopeless)
        if sure
        else hopeless or not kind_
    )
    if not right or answer.ahead is None:
        raise InvalidError(f"job {job_id} of kind {kind_} is told {answer.code}: {answer.summary}")
    return took


async def judged(db: Database, job_ids: Sequence[int]) -> tuple[list[float], float]:
    """Return the seconds of each explanation by itself, and the CPU seconds of all in this process."""
    each = []
    before = time.process_time()
    for job_id in job_ids:
        began = time.perf_counter()
        async with db.transaction() as tx:
            await explain_job(
                tx, await read(tx, job_id), WhyJob(query_id="q", job_id=job_id), DEFAULT_SEGMENTS
            )
        each.append(time.perf_counter() - began)
    return each, time.process_time() - before


async def read(tx: Transaction, job_id: int) -> Job:
    """Return a job, which may have no row of its own yet."""
    found = await job.read(tx, [JobId(job_id)])
    return found.get(JobId(job_id)) or (await block.of_jobs(tx, [JobId(job_id)]))[0].job(JobId(job_id))


async def planned(db: Database, job_id: int) -> Figures:
    """Return what the database itself says of the time of each statement, and by which plan."""
    async with db.transaction() as tx:
        tq_id = (await read(tx, job_id)).tq_id
        return {
            "places": await explained(tx, VIEW_SQL["places"], VO),
            "queue": await explained(tx, QUEUE_SQL["read"], tq_id, SILENT_SECONDS, FADING_SECONDS),
            "chance": await explained(tx, WAIT_SQL["chance"], tq_id),
        }


async def explained(tx: Transaction, query: str, *args: object) -> Figures:
    (plan,) = msgspec.json.decode(await tx.fetchval(f"explain (analyze, format json) {query}", *args))
    return {"milliseconds": round(plan["Execution Time"], 3), "scans": sorted(set(scans(plan["Plan"])))}


def scans(plan: Figures) -> list[str]:
    """Return by which way each table is read."""
    here = [f"{plan['Relation Name']}: {plan['Node Type']}"] if "Relation Name" in plan else []
    return here + [each for below in plan.get("Plans", []) for each in scans(below)]


if __name__ == "__main__":
    run("why", measure, jobs=1_000_000, queues=10_000, elements=1_000, asks=300, expressions=0)
