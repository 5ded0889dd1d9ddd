"""How fast jobs are taken by the job manager's own code: checked, grouped, stored with history, told; all but the broker.

python -m bench.insertion [--queues N] [--runs N] [--in-flight N] [--json]
"""

import asyncio
import random
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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


async def measure(queues: int, runs: int, in_flight: int) -> Figures:
    """Measure with nothing waiting but what comes."""
    kinds = make_queues(Shape(queues=queues))
    async with store(connections=in_flight + 2) as at:
        about = machine(await at.version())
        await at.make_queues(kinds)
        insertion = Insertion(at, kinds, in_flight)
        await insertion.warm()
        for _ in range(runs):
            await insertion.bulk()
        for _ in range(runs):
            await insertion.single()
        return {"machine": about, **await insertion.figures()}


class Taken(NamedTuple):
    """What one run took."""

    jobs: int
    seconds: float
    batches: list[float]
    """Seconds of each."""
    python: float
    """Seconds of CPU."""
    postgres: float

    @property
    def per_second(self) -> float:
        return self.jobs / self.seconds


class Insertion:
    """Jobs that are submitted in bulk, or one by one; the task queues are those that are there.

    `in_flight` transactions at once, as the lanes of the job manager's consumer have them.
    """

    def __init__(self, at: Store, kinds: Sequence[Queue], in_flight: int = IN_FLIGHT) -> None:
        self._at = at
        self._in_flight = in_flight
        self._rng = random.Random(5)
        by_owner: dict[tuple[str, str], list[Queue]] = {}
        for each in kinds:
            by_owner.setdefault((each.owner, each.group), []).append(each)
        self._owners = list(by_owner.values())
        self._submissions = taking(at)
        self._before = 0
        self._bulk: list[Taken] = []
        self._single: list[Taken] = []

    async def warm(self) -> None:
        """Take one batch, after which all that is taken counts."""
        await self._take([[self._sent(BULK)]])
        self._before = await _count(self._at)

    async def bulk(self) -> float:
        """Take submissions of many jobs; return the jobs a second."""
        self._bulk.append(await self._take([[self._sent(BULK)] for _ in range(BULK_JOBS // BULK)]))
        return self._bulk[-1].per_second

    async def single(self) -> float:
        """Take submissions of one job, many in a batch; return the jobs a second."""
        batches = [[self._sent(1) for _ in range(BATCH)] for _ in range(SINGLE_JOBS // BATCH)]
        self._single.append(await self._take(batches))
        return self._single[-1].per_second

    async def figures(self) -> Figures:
        """Return what was found; InvalidError unless each job that was taken is in the database."""
        expected = sum(each.jobs for each in (*self._bulk, *self._single))
        stored = await _count(self._at) - self._before
        if stored != expected:
            raise InvalidError(f"{expected} jobs were taken, {stored} are in the database")
        return {**_figures(self._bulk), "one_job_a_message": _figures(self._single)}

    def _sent(self, jobs: int) -> Sent:
        return submit_of(self._rng, self._rng.choice(self._owners), jobs)

    async def _take(self, batches: Sequence[Sequence[Sent]]) -> Taken:
        feed = offset.ConsumedTopic("bench", uuid.uuid4().hex, TOPIC)
        async with self._at.db.transaction() as tx:
            places = await offset.begin(tx, feed, range(self._in_flight))
        left, each = iter(batches), list[float]()
        began, python, postgres = time.perf_counter(), time.process_time(), self._at.cpu_seconds()
        async with asyncio.TaskGroup() as lanes:
            for partition, place in places.items():
                lanes.create_task(_follow(self._at, self._submissions, (feed, partition, place), left, each))
        return Taken(
            jobs=sum(len(submit.jobs) for batch in batches for _, submit in batch),
            seconds=time.perf_counter() - began,
            batches=each,
            python=time.process_time() - python,
            postgres=self._at.cpu_seconds() - postgres,
        )


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


async def _follow(
    at: Store,
    submissions: Submissions,
    lane: tuple[offset.ConsumedTopic, int, int],
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


def _figures(runs: Sequence[Taken]) -> Figures:
    times = [1e3 * seconds for each in runs for seconds in each.batches]
    return {
        "jobs_per_second": median([each.per_second for each in runs]),
        "batch_p50_ms": percentile(times, 0.5),
        "batch_p99_ms": percentile(times, 0.99),
        "cpu_us_per_job": {
            "python": median([1e6 * each.python / each.jobs for each in runs]),
            "postgres": median([1e6 * each.postgres / each.jobs for each in runs]),
        },
    }


if __name__ == "__main__":
    run("insertion", measure, queues=10_000, runs=3, in_flight=IN_FLIGHT)
