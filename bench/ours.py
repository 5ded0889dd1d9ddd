"""The matcher's and the job manager's own code over a durable Postgres, a round at a time, and every match checked."""

import time
from collections.abc import Sequence

import numpy as np

from bench import insertion
from bench.matcher import Matcher, Run, batches
from bench.measuring import Figures, median, percentile
from bench.rounds import Kind
from bench.store import Store
from bench.validity import InvalidError, Match, check, check_best
from bench.workload import POPULATION, Jobs, Pilot, Queue
from wms.db.database import Database

WARM_UP = 2_000
"""Requests before the first round: plans are made and caches filled, as in a matcher that has served for a minute."""
SAMPLE = 100
"""Matches of each run that are held against every queue there is."""


class Ours:
    """The matcher's and the job manager's code in this process, over a store that they share."""

    def __init__(
        self,
        at: Store,
        kinds: Sequence[Queue],
        jobs: Jobs,
        pilots: Sequence[Pilot],
        *,
        batch: int,
        in_flight: int,
    ) -> None:
        self.kinds, self.jobs, self.pilots = kinds, jobs, pilots
        self.requests = 1
        """In a round."""
        self._at, self._batch, self._in_flight = at, batch, in_flight
        self._matcher = Matcher(at.db)
        self._insertion = insertion.Insertion(at, kinds)
        self._asked = 0
        self._done: list[tuple[Run, float]] = []
        """Each run, the first to warm up, with the CPU seconds of Postgres."""
        self._loading: Figures = {}

    async def load(self) -> None:
        began = time.perf_counter()
        await self._at.load(self.kinds, self.jobs)
        loaded = time.perf_counter() - began
        filled = await self._matcher.load()
        self._loading = {"load_seconds": round(loaded, 1), "index_seconds": round(filled, 2)}

    async def warm(self, kind: Kind) -> None:
        if kind == "matching":
            await self.serve(WARM_UP)
        else:
            await self._insertion.warm()

    async def round(self, kind: Kind) -> float:
        """Match, or insert in bulk and then one by one; return the jobs a second, those of the bulk."""
        if kind == "matching":
            served, _ = await self.serve(self.requests)
            return served.per_second
        bulk = await self._insertion.bulk()
        await self._insertion.single()
        return bulk

    async def serve(self, requests: int) -> tuple[Run, float]:
        """Serve the pilots that come next; return what came of it, and the CPU seconds of Postgres."""
        asking = range(self._asked, min(self._asked + requests, len(self.pilots)))
        self._asked = asking.stop
        before = self._at.cpu_seconds()
        served = await self._matcher.serve(batches(self.pilots, asking, self._batch), self._in_flight)
        self._done.append((served, self._at.cpu_seconds() - before))
        return self._done[-1]

    async def check(self) -> None:
        """Raise InvalidError unless every match is right and the index has lost these jobs alone."""
        runs = [each for each, _ in self._done]
        await check_all(self._at.db, self.kinds, self.jobs, self.pilots, runs)
        index = len(self._matcher.index)
        if index != len(self.jobs) - sum(len(each.matches) for each in runs):
            raise InvalidError(f"the index holds {index} jobs, and not all others were offered")

    async def figures(self) -> Figures:
        """Return what was found, once it is checked."""
        await self.check()
        return {**figures_of(self._done[1:]), **self._loading, "insertion": await self._insertion.figures()}


def figures_of(runs: Sequence[tuple[Run, float]]) -> Figures:
    """Return the figures of runs, each with the CPU seconds of Postgres."""
    times = [1e3 * seconds for each, _ in runs for seconds in each.batches]
    rates = [each.per_second for each, _ in runs]
    return {
        "requests": sum(each.asked for each, _ in runs),
        "matches": sum(len(each.matches) for each, _ in runs),
        "matches_per_second": median(rates),
        "all_matches_per_second": [round(rate) for rate in rates],
        "batch_p50_ms": percentile(times, 0.5),
        "batch_p99_ms": percentile(times, 0.99),
        "cpu_us_per_match": {
            "python": median([1e6 * each.cpu / len(each.matches) for each, _ in runs]),
            "postgres": median([1e6 * postgres / len(each.matches) for each, postgres in runs]),
        },
    }


async def check_all(
    db: Database,
    kinds: Sequence[Queue],
    jobs: Jobs,
    pilots: Sequence[Pilot],
    runs: Sequence[Run],
    *,
    alone: bool = True,
) -> None:
    """Raise InvalidError unless every match fits, is the only one of its job, and is so in the database.

    A matcher that was alone has given the best there was; of several, one may take for gone what another gave back.
    """
    matches = [match for each in runs for match in each.matches]
    taken = check(kinds, jobs, pilots, matches)
    if alone:
        waiting = np.bincount(jobs.queue, minlength=len(kinds))
        left = [n for n in range(len(kinds)) if waiting[n] > taken[n]]
        for each in runs:
            given = [(pilots[match.pilot], int(jobs.queue[match.job - 1])) for match in each.matches[:SAMPLE]]
            nothing = [(pilots[n], None) for n in each.refused[:SAMPLE]]
            check_best(kinds, left, [*given, *nothing])
    await check_stored(db, matches)


FAULTY = """
    select g.job_id, g.request_id, g.pilot_id, j.state, l.pilot_id as held_by, e.matches
    from unnest($1::bigint[], $2::text[], $3::text[]) as g(job_id, request_id, pilot_id)
    left join job j on j.job_id = g.job_id and j.pilot_id = g.pilot_id and j.state = 'Matched' and j.epoch = 1
    left join lease l on l.job_id = g.job_id and l.pilot_id = g.pilot_id and l.epoch = 1 and l.request_id = g.request_id
    left join (select job_id, count(*) as matches from job_event where event = 'match' group by job_id) e
         on e.job_id = g.job_id
    where j.job_id is null or l.job_id is null or e.matches is distinct from 1
    limit 3
"""
COUNTS = """
    select (select count(*) from job where state = 'Matched'), (select count(*) from lease),
           (select count(*) from job_event where event = 'match')
"""


async def check_stored(db: Database, matches: Sequence[Match]) -> None:
    """Raise InvalidError unless each match is one state, one lease, one line of history, and there are no others."""
    async with db.transaction() as tx:
        # Tables that were empty a moment ago have no statistics to plan by.
        await tx.execute("set local enable_nestloop = off")
        faulty = await tx.fetch(
            FAULTY,
            [each.job for each in matches],
            [f"r-{each.pilot}" for each in matches],
            [f"p-{each.pilot % POPULATION}" for each in matches],
        )
        counts = await tx.fetchrow(COUNTS)
    if faulty:
        raise InvalidError(f"offered, but not so in the database: {[dict(row) for row in faulty]}")
    assert counts is not None
    if set(counts) != {len(matches)}:
        raise InvalidError(
            f"{len(matches)} matches offered; in the database are {tuple(counts)} states, leases, lines of history"
        )
