"""How fast waiting jobs are matched by the matcher's own code and a durable Postgres; a peer, if named, does the same.

python -m bench.matching [--waiting N] [--queues N] [--requests N] [--runs N] [--batch N] [--in-flight N] [--peer dirac] [--json]

Measured is all that a batch of requests costs but the broker: selection, claim, lease, history, offsets, offers and events
through the outbox. Every match is checked, by a naive evaluator and in the database; a false one fails the benchmark.
"""

import itertools
import time
from collections.abc import Sequence

import numpy as np

from bench import insertion
from bench.matcher import Matcher, Run, batches
from bench.measuring import Figures, machine, median, percentile, run
from bench.peers import find_peer
from bench.store import Store, store
from bench.validity import InvalidError, Match, check, check_best
from bench.workload import POPULATION, Jobs, Pilot, Queue, Shape, make_jobs, make_pilots, make_queues
from wms.db.database import Database

WARM_UP = 2_000
"""Requests before the first run: plans are made and caches filled, as in a matcher that has served for a minute."""
SAMPLE = 100
"""Matches of each run that are held against every queue there is."""


async def measure(
    waiting: int, queues: int, requests: int, runs: int, batch: int, in_flight: int, peer: str
) -> Figures:
    shape = Shape(queues=queues, waiting=waiting)
    requests = min(requests, max(1, waiting // (2 * runs)))
    kinds, jobs = make_queues(shape), make_jobs(shape)
    pilots = make_pilots(shape, WARM_UP + runs * requests)
    async with store(connections=in_flight + 4) as at:
        about = machine(await at.version())
        ours = await matching(at, kinds, jobs, pilots, runs=runs, batch=batch, in_flight=in_flight)
        ours["insertion"] = await insertion.measure(at, kinds, runs=runs)
    figures: Figures = {"machine": about, "ours": ours}
    if peer:
        theirs = await find_peer(peer)(kinds, jobs, pilots)
        figures[peer] = theirs
        figures["ratio"] = {
            "matching": round(ours["matches_per_second"] / theirs["matches_per_second"], 1),
            "insertion": round(ours["insertion"]["jobs_per_second"] / theirs["insertions_per_second"], 1),
        }
    return figures


async def matching(
    at: Store,
    kinds: Sequence[Queue],
    jobs: Jobs,
    pilots: Sequence[Pilot],
    *,
    runs: int,
    batch: int,
    in_flight: int,
) -> Figures:
    """Load, warm up, measure, check."""
    began = time.perf_counter()
    await at.load(kinds, jobs)
    loaded = time.perf_counter() - began
    matcher = Matcher(at.db)
    filled = await matcher.load()
    done: list[tuple[Run, float]] = []
    bounds = np.linspace(WARM_UP, len(pilots), runs + 1).astype(int).tolist()
    for first, last in itertools.pairwise([0, *bounds]):
        before = at.cpu_seconds()
        served = await matcher.serve(batches(pilots, range(first, last), batch), in_flight)
        done.append((served, at.cpu_seconds() - before))
    await check_all(at.db, kinds, jobs, pilots, [each for each, _ in done])
    if len(matcher.index) != len(jobs) - sum(len(each.matches) for each, _ in done):
        raise InvalidError(f"the index holds {len(matcher.index)} jobs, and not all others were offered")
    return {
        **_figures(done[1:]),
        "load_seconds": round(loaded, 1),
        "index_seconds": round(filled, 2),
    }


def _figures(runs: Sequence[tuple[Run, float]]) -> Figures:
    times = [1e3 * seconds for each, _ in runs for seconds in each.batches]
    rates = [len(each.matches) / each.seconds for each, _ in runs]
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


if __name__ == "__main__":
    run(
        "matching",
        measure,
        waiting=1_000_000,
        queues=10_000,
        requests=60_000,
        runs=3,
        batch=1_024,
        in_flight=2,
        peer="",
    )
