"""How fast jobs are taken by the job manager's own code: checked, grouped, stored with history, told; all but the broker.

python -m bench.insertion [--queues N] [--runs N] [--in-flight N] [--json]
"""

import asyncio
import random
import time
import uuid
from collections.abc import Iterator, Sequence

import msgspec

from bench.measuring import Figures, machine, median, percentile, run
from bench.store import Store, describe, store
from bench.validity import InvalidError
from bench.workload import VO, Queue, Shape, make_queues
from services.job_manager.submission.accept import ReceivedSubmission, Submissions
from services.job_manager.submission.submit_check import SubmitCheck
from services.job_manager.submission.waiting_limits import WaitingQuota
from wms.auth.principal import Principal
from wms.db import offset
from wms.ids import CommandId
from wms.matching.grouping import DEFAULT_SEGMENTS
from wms.messages.commands import TOPIC, Submit

Sent = tuple[Principal, Submit]

BULK = 1_000
"""Jobs in one submission, when they come in bulk."""
BULK_JOBS = 30_000
SINGLE_JOBS = 5_120
BATCH = 512
"""Messages in a batch, the consumer's default."""
IN_FLIGHT = 2
"""Lanes of the job manager's consumer."""


async def alone(queues: int, runs: int, in_flight: int) -> Figures:
    """Measure with nothing waiting but what comes."""
    kinds = make_queues(Shape(queues=queues))
    async with store(connections=in_flight + 2) as at:
        about = machine(await at.version())
        await at.make_queues(kinds)
        return {"machine": about, **await measure(at, kinds, runs, in_flight)}


async def measure(at: Store, kinds: Sequence[Queue], runs: int, in_flight: int = IN_FLIGHT) -> Figures:
    """Measure single jobs in bulk, and jobs submitted one by one; the task queues are those that are there.

    `in_flight` transactions at once, as the lanes of the job manager's consumer have them.
    """
    rng = random.Random(5)
    by_owner: dict[tuple[str, str], list[Queue]] = {}
    for each in kinds:
        by_owner.setdefault((each.owner, each.group), []).append(each)
    owners = list(by_owner.values())

    def sent(jobs: int) -> Sent:
        return submit_of(rng, rng.choice(owners), jobs)

    before = await _count(at)
    submissions = taking(at)
    bulk, single = [], []
    for _ in range(runs):
        batches = [[sent(BULK)] for _ in range(BULK_JOBS // BULK)]
        bulk.append(await _take(at, submissions, batches, in_flight))
    for _ in range(runs):
        batches = [[sent(1) for _ in range(BATCH)] for _ in range(SINGLE_JOBS // BATCH)]
        single.append(await _take(at, submissions, batches, in_flight))
    expected = runs * (BULK_JOBS // BULK * BULK + SINGLE_JOBS // BATCH * BATCH)
    stored = await _count(at) - before
    if stored != expected:
        raise InvalidError(f"{expected} jobs were taken, {stored} are in the database")
    return {**_figures(bulk, BULK_JOBS), "one_job_a_message": _figures(single, SINGLE_JOBS)}


def taking(at: Store) -> Submissions:
    """Return the job manager's handler of submissions."""
    return Submissions(DEFAULT_SEGMENTS, SubmitCheck(DEFAULT_SEGMENTS), WaitingQuota(at.db))


def submit_of(rng: random.Random, queues: Sequence[Queue], jobs: int) -> Sent:
    """Return one user's submission of jobs for any of the user's queues."""
    queue = queues[0]
    principal = Principal(
        kind="user", owner=queue.owner, group=queue.group, vo=VO, token_id="t", expires_at=4e9
    )
    raw = (msgspec.json.encode(describe(rng.choice(queues), rng.randint(1, 9))) for _ in range(jobs))
    return principal, Submit(command_id=CommandId(uuid.uuid4().hex), jobs=tuple(map(msgspec.Raw, raw)))


async def _take(
    at: Store, submissions: Submissions, batches: Sequence[Sequence[Sent]], in_flight: int
) -> tuple[float, list[float], float, float]:
    """Return seconds, seconds of each batch, CPU seconds of Python and of Postgres."""
    feed = offset.Feed("bench", uuid.uuid4().hex, TOPIC)
    async with at.db.transaction() as tx:
        places = await offset.begin(tx, feed, range(in_flight))
    left, each = iter(batches), list[float]()
    began, python, postgres = time.perf_counter(), time.process_time(), at.cpu_seconds()
    async with asyncio.TaskGroup() as lanes:
        for partition, place in places.items():
            lanes.create_task(_follow(at, submissions, (feed, partition, place), left, each))
    return (
        time.perf_counter() - began,
        each,
        time.process_time() - python,
        at.cpu_seconds() - postgres,
    )


async def _follow(
    at: Store,
    submissions: Submissions,
    lane: tuple[offset.Feed, int, int],
    batches: Iterator[Sequence[Sent]],
    seconds: list[float],
) -> None:
    """Take batch after batch, as one lane of a consumer does."""
    feed, partition, place = lane
    for batch in batches:
        before = time.perf_counter()
        async with at.db.transaction() as tx:
            await offset.advance(tx, feed, {partition: (place, place + len(batch))})
            await submissions.take(tx, [ReceivedSubmission(*each) for each in batch])
        place += len(batch)
        seconds.append(time.perf_counter() - before)


async def _count(at: Store) -> int:
    async with at.db.transaction() as tx:
        return int(await tx.fetchval("select count(*) from job"))


def _figures(runs: Sequence[tuple[float, list[float], float, float]], jobs: int) -> Figures:
    times = [1e3 * seconds for _, batches, _, _ in runs for seconds in batches]
    return {
        "jobs_per_second": median([jobs / seconds for seconds, *_ in runs]),
        "batch_p50_ms": percentile(times, 0.5),
        "batch_p99_ms": percentile(times, 0.99),
        "cpu_us_per_job": {
            "python": median([1e6 * python / jobs for _, _, python, _ in runs]),
            "postgres": median([1e6 * postgres / jobs for *_, postgres in runs]),
        },
    }


if __name__ == "__main__":
    run("insertion", alone, queues=10_000, runs=3, in_flight=IN_FLIGHT)
