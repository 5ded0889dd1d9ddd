"""What a match costs as jobs, queues and matchers grow, and in the shape of a production system.

python -m bench.scaling [--largest N] [--requests N] [--in-flight N] [--json]

From ten thousand jobs up to `--largest` (ten million jobs take some twelve gigabytes and ten minutes to load), then a
million, or the largest if that is less, with 1, 2 and 4 matchers, then the shape of LHCb's task queues of March 2026.
"""

import asyncio
import contextlib
import sys
from collections.abc import Sequence

import msgspec

from bench.measuring import Figures, machine, percentile, read_line, run
from bench.one_matcher import Outcome, Task
from bench.ours import check_all
from bench.store import Store, store
from bench.workload import LHCB, Jobs, Queue, Shape, make_jobs, make_pilots, make_queues

SIZES = (
    Shape(waiting=10_000, queues=200),
    Shape(waiting=100_000, queues=2_000),
    Shape(waiting=1_000_000, queues=10_000),
    Shape(waiting=10_000_000, queues=20_000, sites=1_000, tags=300),
)
MATCHERS = (2, 4)
LINE_LIMIT = 2**28
WITHIN_SECONDS = 600.0


async def measure(largest: int, requests: int, in_flight: int) -> Figures:
    sizes = [shape for shape in SIZES if shape.waiting <= largest]
    async with store() as at:
        about = machine(await at.version())
    found = [await one(shape, requests, 1, in_flight) for shape in sizes]
    usual = next(shape for shape in reversed(sizes) if shape.waiting <= 1_000_000)
    several = [await one(usual, requests, matchers, in_flight) for matchers in MATCHERS]
    lhcb = await one(LHCB, requests, 1, in_flight) if largest >= LHCB.waiting else None
    return {"machine": about, "sizes": found, "matchers": several, "lhcb": lhcb}


async def one(shape: Shape, requests: int, matchers: int, in_flight: int) -> Figures:
    """Load the shape anew and have it served by so many matchers; check all that they did."""
    requests = min(requests, shape.waiting // 4)
    queues, jobs = make_queues(shape), make_jobs(shape)
    async with store() as at:
        await at.load(queues, jobs)
        tasks = [
            Task(
                url=at.url, shape=shape, requests=requests, matcher=n, matchers=matchers, in_flight=in_flight,
                warm_up=min(2_000, requests),
            )
            for n in range(matchers)
        ]  # fmt: skip
        outcomes, postgres = await serve(at, tasks)
        await check(at, queues, jobs, tasks[0], outcomes)
        size = await at.size()
    return {
        "waiting_jobs": shape.waiting,
        "task_queues": shape.queues,
        "sites": shape.sites,
        "tags": shape.tags,
        "matchers": matchers,
        **_figures(outcomes, postgres),
        "database_mib": round(size / 2**20),
    }


def _figures(outcomes: Sequence[Outcome], postgres: float) -> Figures:
    matches = sum(len(each.run.matches) for each in outcomes)
    times = [1e3 * seconds for each in outcomes for seconds in each.run.batches]
    return {
        "matches": matches,
        "nothing_found": sum(len(each.run.refused) for each in outcomes),
        "matches_per_second": round(matches / max(each.run.seconds for each in outcomes)),
        "batch_p50_ms": percentile(times, 0.5),
        "batch_p99_ms": percentile(times, 0.99),
        "cpu_us_per_match": {
            "python": round(1e6 * sum(each.run.cpu for each in outcomes) / matches, 1),
            "postgres": round(1e6 * postgres / matches, 1),
        },
        "index_seconds": round(max(each.index_seconds for each in outcomes), 1),
    }


async def serve(at: Store, tasks: Sequence[Task]) -> tuple[list[Outcome], float]:
    """Run the matchers, which begin together; return what they did and the seconds of CPU that Postgres used."""
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.one_matcher",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE_LIMIT,
        )
        for _ in tasks
    ]  # fmt: skip
    try:
        async with asyncio.timeout(WITHIN_SECONDS):
            for process, task in zip(processes, tasks, strict=True):
                _say(process, msgspec.json.encode(task))
            await asyncio.gather(*(read_line(each, "a matcher failed") for each in processes))
            before = at.cpu_seconds()
            for process in processes:
                _say(process, b"go")
            lines = await asyncio.gather(*(read_line(each, "a matcher failed") for each in processes))
            used = at.cpu_seconds() - before
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return [msgspec.json.decode(line, type=Outcome) for line in lines], used


def _say(process: asyncio.subprocess.Process, line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line + b"\n")


async def check(
    at: Store, queues: Sequence[Queue], jobs: Jobs, task: Task, outcomes: Sequence[Outcome]
) -> None:
    """Raise InvalidError unless every match of all matchers is one."""
    pilots = make_pilots(task.shape, task.warm_up + task.requests)
    runs = [run for each in outcomes for run in (each.warm, each.run)]
    await check_all(at.db, queues, jobs, pilots, runs, alone=len(outcomes) == 1)


if __name__ == "__main__":
    run("scaling", measure, largest=1_000_000, requests=50_000, in_flight=2)
