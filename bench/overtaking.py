"""What it costs several matchers to give the oldest jobs of all, and how far younger jobs overtake without that.

python -m bench.overtaking [--jobs N] [--requests N] [--matchers N] [--rounds N] [--json]

The worst case: all jobs wait in few queues, all matchers are busy, and they do not hear of each other, so that each draws what
the others have drawn. Rounds with the leeway of the service and with none alternate on the same machine.
"""

import statistics
from collections.abc import Sequence

import numpy as np

from bench.measuring import Figures, machine, run
from bench.one_matcher import Outcome, Task
from bench.ours import check_all
from bench.scaling import serve
from bench.store import store
from bench.workload import Jobs, Shape, make_jobs, make_pilots, make_queues

QUEUES = 4


async def measure(jobs: int, requests: int, matchers: int, rounds: int) -> Figures:
    shape = Shape(waiting=jobs, queues=QUEUES)
    async with store() as at:
        about = machine(await at.version())
    found = [
        (await one(shape, requests, matchers, exact=False), await one(shape, requests, matchers, exact=True))
        for _ in range(rounds)
    ]
    ratios = [exact["matches_per_second"] / usual["matches_per_second"] for usual, exact in found]
    return {
        "machine": about,
        "matchers": matchers,
        "with_leeway": [usual for usual, _ in found],
        "exact": [exact for _, exact in found],
        "exact_to_leeway": {"median": round(statistics.median(ratios), 2), "range": [round(min(ratios), 2), round(max(ratios), 2)]},
    }  # fmt: skip


async def one(shape: Shape, requests: int, matchers: int, *, exact: bool) -> Figures:
    """Serve the requests of a fresh store; return the rate and by how many younger jobs a job was overtaken."""
    queues, jobs = make_queues(shape), make_jobs(shape)
    async with store() as at:
        await at.load(queues, jobs)
        tasks = [
            Task(
                url=at.url,
                shape=shape,
                requests=requests,
                matcher=n,
                matchers=matchers,
                exact=exact,
                warm_up=matchers,
            )
            for n in range(matchers)
        ]
        outcomes, _ = await serve(at, tasks)
        pilots = make_pilots(shape, tasks[0].warm_up + requests)
        runs = [run for each in outcomes for run in (each.warm, each.run)]
        await check_all(at.db, queues, jobs, pilots, runs, alone=matchers == 1)
    matches = sum(len(each.run.matches) for each in outcomes)
    return {
        "matches_per_second": round(matches / max(each.run.seconds for each in outcomes)),
        "left_behind_by_at_most": _left_behind(outcomes, jobs),
    }


def _left_behind(outcomes: Sequence[Outcome], jobs: Jobs) -> int:
    """Return by how many younger jobs of its queue and priority the job was overtaken that was overtaken most."""
    given = np.array(
        [match.job - 1 for each in outcomes for match in (*each.warm.matches, *each.run.matches)]
    )
    taken = np.zeros(len(jobs), dtype=bool)
    taken[given] = True
    worst = 0
    for level in {*zip(jobs.queue.tolist(), jobs.priority.tolist(), strict=True)}:
        of_level = taken[(jobs.queue == level[0]) & (jobs.priority == level[1])]
        if not of_level.all():
            worst = max(worst, int(of_level[of_level.argmin() :].sum()))
    return worst


if __name__ == "__main__":
    run("overtaking", measure, jobs=200_000, requests=60_000, matchers=2, rounds=3)
