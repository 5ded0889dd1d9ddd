"""Whether matching stays fast and tables stay small, however many jobs have come and gone: submitted, matched, accepted, done.

python -m bench.churn [--jobs N] [--waiting N] [--round N] [--forget-after SECONDS] [--json]

By the job manager's handlers and the matcher's claims, over a durable Postgres; beside `--waiting` jobs that always wait. It
fails when tables of what is under way grow with what is over, or when a match or an end comes to cost half as much again.
`--forget-after` has what ended so long ago forgotten as it goes on; 0 keeps everything. Five million: `--jobs 5000000`.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from bench.insertion import submit_of, taking
from bench.matcher import KEYS, NOTICES, Nowhere
from bench.measuring import Figures, machine, median, run
from bench.store import Store, store
from bench.validity import InvalidError
from bench.workload import VO, Queue, Shape, make_queues
from services.job_manager.config import RetentionSettings
from services.job_manager.maintenance.retention import Retention
from services.job_manager.reports import Reports
from services.job_manager.submission.accept import ReceivedSubmission
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.bus.relay import Relay
from wms.db import job, limit
from wms.db.database import Transaction
from wms.db.job import Claim, Claimed
from wms.ids import AttemptId, JobId, PilotId, ReportId, RequestId, TaskQueueId
from wms.job.reasons import Code
from wms.lease import LeaseTerms
from wms.messages.reports import Report, Result

BATCH = 512
BULK = 1_000
PASSING = ("lease", "outbox", "consumer_offset")
"""What they hold does not grow with the jobs that are over."""
SMALL_BYTES = 16 * 2**20
"""Less is no bloat, whatever it was before."""
LARGER, DEARER = 2.0, 1.5
"""What is too much, against the beginning."""


SIZES = """
    select coalesce(parent.relname, c.relname) as name, sum(pg_table_size(c.oid))::bigint as table_bytes,
           sum(pg_indexes_size(c.oid))::bigint as index_bytes, sum(coalesce(s.n_dead_tup, 0))::bigint as dead,
           sum(coalesce(s.n_live_tup, 0))::bigint as live
    from pg_class c
    left join pg_stat_user_tables s on s.relid = c.oid
    left join pg_inherits i on i.inhrelid = c.oid
    left join pg_class parent on parent.oid = i.inhparent
    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
    group by 1
"""


class Phase:
    """The costs of one kind of step, round by round."""

    def __init__(self, at: Store) -> None:
        self._at = at
        self.postgres: list[float] = []
        self.python: list[float] = []
        self.seconds: list[float] = []

    async def measure(self, work: Awaitable[None], jobs: int) -> None:
        before = time.perf_counter(), time.process_time(), self._at.cpu_seconds()
        await work
        self.seconds.append(time.perf_counter() - before[0])
        self.python.append(1e6 * (time.process_time() - before[1]) / jobs)
        self.postgres.append(1e6 * (self._at.cpu_seconds() - before[2]) / jobs)

    def figures(self) -> Figures:
        """Return the CPU us a job of up to ten parts of the run, in their order."""
        return {
            "python_cpu_us": _tenths(self.python),
            "postgres_cpu_us": _tenths(self.postgres),
            "seconds_a_round": _tenths(self.seconds),
        }

    def halves(self) -> tuple[float, float]:
        """Return the CPU us of Postgres a job, in the first half of the rounds and in the second."""
        half = -(-len(self.postgres) // 2)
        return median(self.postgres[:half]), median(self.postgres[-half:])


def _tenths(values: Sequence[float]) -> list[float]:
    """Return the medians of ten parts of the values, or the values if they are fewer."""
    parts = min(10, len(values))
    bounds = [n * len(values) // parts for n in range(parts + 1)]
    return [median(values[low:high]) for low, high in itertools.pairwise(bounds)]


class Churn:
    """Jobs that come and go."""

    def __init__(self, at: Store, queues: Sequence[Queue]) -> None:
        self._at = at
        self._rng = random.Random(6)
        by_owner: dict[tuple[str, str], list[Queue]] = {}
        for each in queues:
            by_owner.setdefault((each.owner, each.group), []).append(each)
        self._owners = list(by_owner.values())
        self._waiting: list[JobId] = []
        self._queue_of: dict[JobId, TaskQueueId] = {}
        self._held: list[AttemptId] = []
        self._numbers = itertools.count()
        self._reports = Reports(LeaseTerms())
        self._submissions = taking(at)
        self._pilot = Principal(
            kind="pilot", owner="bench", group="pilot", vo=VO, rights=frozenset({"generic_pilot"}),
            pilot_id="bench", site="bench", ce="bench", token_id="t", expires_at=4e9,
        )  # fmt: skip

    async def submit(self, jobs: int) -> None:
        for count in _parts(jobs, BULK):
            sent = submit_of(self._rng, self._rng.choice(self._owners), count)
            async with self._at.db.transaction() as tx:
                await self._submissions.take(tx, [ReceivedSubmission(*sent)])
                ranges = await tx.fetchval(
                    "select ids::text from submission where command_id = $1", sent[1].command_id
                )
                for low, high in msgspec.json.decode(ranges):
                    between = "select job_id, tq_id from job where job_id between $1 and $2"
                    self._queue_of |= dict(map(tuple, await tx.fetch(between, low, high)))
            for low, high in msgspec.json.decode(ranges):
                self._waiting += map(JobId, range(low, high + 1))

    async def match(self, jobs: int) -> None:
        """Claim any of those that wait."""
        self._rng.shuffle(self._waiting)
        for count in _parts(jobs, BATCH):
            chosen, self._waiting = self._waiting[-count:], self._waiting[:-count]
            request_id = RequestId(f"r-{next(self._numbers)}")
            claims = [
                Claim(
                    job_id=each,
                    pilot_id=PilotId("bench"),
                    request_id=request_id,
                    site="bench",
                    ce="bench",
                    tq_id=self._queue_of[each],
                )
                for each in chosen
            ]
            claimed = await self._at.db.attempt(partial(self._claim, claims))
            if len(claimed) != count:
                raise InvalidError(f"{count - len(claimed)} of {count} waiting jobs could not be claimed")
            self._held += [AttemptId(each.job_id, each.epoch) for each in claimed]

    @staticmethod
    async def _claim(claims: Sequence[Claim], tx: Transaction) -> list[Claimed]:
        return await job.claim(tx, claims, 3_600.0, (await limit.advertising(tx)).generation) or []

    async def accept(self) -> None:
        await self._each(lambda part: {"accept": part})

    async def end(self) -> None:
        await self._each(
            lambda part: {
                "start": part,
                "finish": tuple(
                    Result(job_id=job_id, epoch=epoch, outcome="done", code=Code.DONE, exit_code=0)
                    for job_id, epoch in part
                ),
            }
        )
        self._held.clear()

    async def _each(self, said: Callable[[tuple[AttemptId, ...]], dict[str, Any]]) -> None:
        for first in range(0, len(self._held), BATCH):
            report = Report(
                report_id=ReportId(f"{next(self._numbers)}"),
                pilot_id=PilotId("bench"),
                slots=BATCH,
                **said(tuple(self._held[first : first + BATCH])),
            )
            async with self._at.db.transaction() as tx:
                await self._reports.handle(tx, [Delivery(self._pilot, report)])


def _parts(total: int, size: int) -> Iterator[int]:
    return (min(size, total - first) for first in range(0, total, size))


async def measure(jobs: int, waiting: int, round: int, forget_after: int) -> Figures:  # noqa: A002 - an option's name
    queues = make_queues(Shape(queues=1_000, waiting=waiting))
    async with store() as at:
        about = machine(await at.version())
        relaying = asyncio.create_task(Relay(at.db, Nowhere(), KEYS, NOTICES).run())
        churn = Churn(at, queues)
        await churn.submit(waiting)
        phases = {name: Phase(at) for name in ("submit", "match", "accept", "end")}
        keeper = Retention(at.db, _retention(forget_after)) if forget_after else None
        sizes: list[dict[str, dict[str, int]]] = []
        for count in _parts(jobs, round):
            await phases["submit"].measure(churn.submit(count), count)
            await phases["match"].measure(churn.match(count), count)
            await phases["accept"].measure(churn.accept(), count)
            await phases["end"].measure(churn.end(), count)
            if keeper is not None:
                await keeper.forget()
            async with at.db.transaction() as tx:
                sizes.append(await _sizes(tx))
        relaying.cancel()
        await asyncio.gather(relaying, return_exceptions=True)
        async with at.db.transaction() as tx:
            ended = await tx.fetchval("select count(*) from job where state = 'Done'")
    if not forget_after and ended != jobs:
        raise InvalidError(f"{jobs} jobs were done, {ended} are Done")
    figures = {name: phase.figures() for name, phase in phases.items()}
    early = sizes[len(sizes) // 10]
    _check(phases, early, sizes[-1])
    return {"machine": about, "phases": figures, "early": _shown(early), "late": _shown(sizes[-1])}


def _retention(age: float) -> RetentionSettings:
    return RetentionSettings(ended_jobs_seconds=age, deleted_jobs_seconds=age, submissions_seconds=age)


async def _sizes(tx: Transaction) -> dict[str, dict[str, int]]:
    return {row["name"]: {name: row[name] for name in tuple(row.keys())[1:]} for row in await tx.fetch(SIZES)}


def _shown(sizes: dict[str, dict[str, int]]) -> Figures:
    return {
        name: {
            "table_mib": round(size["table_bytes"] / 2**20, 1),
            "index_mib": round(size["index_bytes"] / 2**20, 1),
            "rows": size["live"],
            "dead_rows": size["dead"],
        }
        for name, size in sorted(sizes.items())
        if size["table_bytes"] + size["index_bytes"] > 2**20
    }


def _check(
    phases: dict[str, Phase], early: dict[str, dict[str, int]], late: dict[str, dict[str, int]]
) -> None:
    for name in PASSING:
        before, after = (sum(list(size[name].values())[:2]) for size in (early, late))
        if after > max(SMALL_BYTES, LARGER * before):
            raise InvalidError(f"table {name} grew from {before:,} to {after:,} bytes")
    for name in ("match", "end"):
        phase = phases[name]
        first, last = phase.halves()
        if last > DEARER * first:
            raise InvalidError(
                f"{name}: {first} us of Postgres a job in the first half, {last} in the second"
            )


if __name__ == "__main__":
    run("churn", measure, jobs=100_000, waiting=50_000, round=10_000, forget_after=0)
