"""Whether matching stays fast and tables stay small, however many jobs have come and gone: submitted, matched, accepted, done.

python -m bench.churn [--jobs N] [--seconds N] [--waiting N] [--round N] [--forget-after SECONDS] [--json]

By the job manager's handlers and the matcher's claims, over a durable Postgres; beside `--waiting` jobs that always wait. It
goes on until so many jobs and so many seconds are over. `--forget-after` has what ended so long ago forgotten as it goes on; 0
keeps everything. Five million: `--jobs 5000000`.

It fails when a match or an end comes to cost half as much again, or when a table of what is under way keeps growing. Such a
table holds what is written between two vacuums, since a vacuum makes room but shrinks nothing. It grows at first, the more the
faster the machine, and then settles; a later step comes of a late vacuum. A table with a leak grows with the jobs, to twice
the size in twice the time. So the most that a table held in the second half of the run is compared with the most that it held
in the first. Autovacuum looks every ten seconds: `--seconds 60` let it look three times in each half.
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
from wms.db import claim, limit
from wms.db.claim import ClaimedJob, JobClaim
from wms.db.database import Transaction
from wms.ids import AttemptId, JobId, PilotId, ReportId, RequestId, TaskQueueId
from wms.job.reasons import Code
from wms.lease import LeaseDurations
from wms.messages.reports import Report, Result

BATCH = 512
BULK = 1_000
PASSING = ("lease", "outbox", "consumer_offset")
"""What they hold does not grow with the jobs that are over."""
SMALL_BYTES = 16 * 2**20
"""Less is no bloat, whatever it was before."""
LARGER, DEARER = 1.5, 1.5
"""What is too much in the second half of the rounds, against the first."""

Sizes = dict[str, dict[str, int]]
"""By table, as `SIZES` names them."""

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
        self._reports = Reports(LeaseDurations())
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
                JobClaim(
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
    async def _claim(claims: Sequence[JobClaim], tx: Transaction) -> list[ClaimedJob]:
        return await claim.claim(tx, claims, 3_600.0, (await limit.advertising(tx)).generation) or []

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


async def measure(
    jobs: int,
    seconds: int,
    waiting: int,
    round: int,  # noqa: A002 - an option's name
    forget_after: int,
) -> Figures:
    async with store() as at:
        about = machine(await at.version())
        return {"machine": about, **await churned(at, jobs, seconds, waiting, round, forget_after)}


async def churned(
    at: Store, jobs: int, seconds: int, waiting: int, in_round: int, forget_after: int = 0
) -> Figures:
    """Let jobs come and go, so many at a time; InvalidError if that leaves traces."""
    relaying = asyncio.create_task(Relay(at.db, Nowhere(), KEYS, NOTICES).run())
    churn = Churn(at, make_queues(Shape(queues=1_000, waiting=waiting)))
    await churn.submit(waiting)
    phases = {name: Phase(at) for name in ("submit", "match", "accept", "end")}
    keeper = Retention(at.db, _retention(forget_after)) if forget_after else None
    sizes: list[Sizes] = []
    until = time.perf_counter() + seconds
    while len(sizes) * in_round < jobs or time.perf_counter() < until:
        await phases["submit"].measure(churn.submit(in_round), in_round)
        await phases["match"].measure(churn.match(in_round), in_round)
        await phases["accept"].measure(churn.accept(), in_round)
        await phases["end"].measure(churn.end(), in_round)
        if keeper is not None:
            await keeper.forget()
        async with at.db.transaction() as tx:
            sizes.append(await _sizes(tx))
    relaying.cancel()
    await asyncio.gather(relaying, return_exceptions=True)
    done = len(sizes) * in_round
    async with at.db.transaction() as tx:
        ended = await tx.fetchval("select count(*) from job where state = 'Done'")
    if not forget_after and ended != done:
        raise InvalidError(f"{done} jobs were done, {ended} are Done")
    check_growth(sizes)
    _check_costs(phases)
    return {
        "jobs": done,
        "phases": {name: phase.figures() for name, phase in phases.items()},
        "early": _shown(sizes[len(sizes) // 10]),
        "late": _shown(sizes[-1]),
    }


def _retention(age: float) -> RetentionSettings:
    return RetentionSettings(ended_jobs_seconds=age, deleted_jobs_seconds=age, submissions_seconds=age)


async def _sizes(tx: Transaction) -> Sizes:
    return {row["name"]: {name: row[name] for name in tuple(row.keys())[1:]} for row in await tx.fetch(SIZES)}


def _shown(sizes: Sizes) -> Figures:
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


def check_growth(sizes: Sequence[Sizes]) -> None:
    """Raise InvalidError when a table of what is under way kept growing from the first half of the rounds to the second."""
    half = len(sizes) // 2
    for name in PASSING:
        held = [size[name]["table_bytes"] + size[name]["index_bytes"] for size in sizes]
        before, after = max(held[:half], default=0), max(held[half:])
        if after > max(SMALL_BYTES, LARGER * before):
            raise InvalidError(
                f"table {name} keeps growing: {before:,} bytes in the first half, {after:,} in the second"
            )


def _check_costs(phases: dict[str, Phase]) -> None:
    for name in ("match", "end"):
        first, last = phases[name].halves()
        if last > DEARER * first:
            raise InvalidError(
                f"{name}: {first} us of Postgres a job in the first half, {last} in the second"
            )


if __name__ == "__main__":
    run("churn", measure, jobs=100_000, seconds=60, waiting=50_000, round=10_000, forget_after=0)
