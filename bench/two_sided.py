"""What it costs that jobs and computing elements each say what they require of the other: the same jobs matched with and without.

python -m bench.two_sided [--waiting N] [--queues N] [--expressions N] [--elements N] [--requests N] [--runs N] [--json]

Two matchers over one durable database answer the same requests in turn: one knows what the queues ask for alone, the other also
the expressions of jobs and the ads of elements, some of which change before each of its runs. Every match is checked in the
database and by a naive evaluator that asks HTCondor's library of both ads; a false one fails the benchmark.
"""

import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from bench.expressions import Element, at_elements, later, make_elements, with_expressions
from bench.matcher import Matcher, Run, batches
from bench.measuring import Figures, machine, median, percentile, run
from bench.ours import SAMPLE, WARM_UP, check_stored
from bench.store import Store, store
from bench.two_ads import Judge
from bench.validity import InvalidError, Match, check, check_best, mismatch
from bench.workload import POPULATION, Jobs, Pilot, Queue, Shape, make_jobs, make_pilots, make_queues
from services.matcher import ads as handling
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.ids import JobId
from wms.messages.ads import Advertise
from wms.site import ComputingElement

CHANGED = 0.1
"""Part of the elements that tell something new before each run: as many as within six seconds, if each does every minute."""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ANYONE = Principal(
    kind="site", owner="a", group="", vo="", rights=frozenset(), token_id="t", expires_at=4e9, site="*"
)


class Turn(NamedTuple):
    """A run, and what the elements told by then."""

    run: Run
    postgres: float
    """Processor seconds of the database."""
    evaluated: int
    """Pairs of an expression and an ad looked at for the first time."""
    elements: list[Element]


class Work(NamedTuple):
    """What waits, who asks."""

    queues: list[Queue]
    jobs: Jobs
    pilots: list[Pilot]


async def measure(
    *,
    waiting: int,
    queues: int,
    expressions: int,
    elements: int,
    requests: int,
    runs: int,
    batch: int,
    in_flight: int,
) -> Figures:
    shape = Shape(queues=queues, waiting=waiting)
    each = max(1, min(requests // runs, waiting // (8 * runs)))
    there = make_elements(shape, elements)
    pilots = at_elements(make_pilots(shape, POPULATION), there)
    work = Work(with_expressions(make_queues(shape), expressions), make_jobs(shape), pilots)
    async with store(connections=in_flight + 4) as at:
        about = machine(await at.version())
        contest = Contest(at, work, there, batch, in_flight)
        await contest.load()
        for count in (min(WARM_UP, each), *[each] * runs):
            await contest.serve(count)
        await contest.check()
    return {"machine": about, **contest.figures()}


class Contest:
    """Two matchers over one database."""

    def __init__(self, at: Store, work: Work, elements: list[Element], batch: int, in_flight: int) -> None:
        self._at = at
        self._work = work
        self._elements = elements
        self._batch = batch
        self._in_flight = in_flight
        self._rng = random.Random(7)
        self._asking: list[Pilot] = []
        """All who asked so far."""
        self._advertised = 0
        self.plain, self.two_sided = Matcher(at.db), Matcher(at.db)
        self._loaded = [0.0, 0.0]
        self.turns: tuple[list[Turn], list[Turn]] = ([], [])

    async def load(self) -> None:
        """Let the jobs wait: for the one matcher as they are, for the other with their expressions."""
        bare = [_bare(each) for each in self._work.queues]
        await self._at.load(bare, self._work.jobs)
        self._loaded[0] = await self.plain.load()
        await self._at.change_queues(bare, self._work.queues)
        await self._advertise(self._elements)
        self._loaded[1] = await self.two_sided.load()

    async def serve(self, requests: int) -> None:
        """Let the same ask the one and then the other."""
        pair = (self.plain, self.two_sided)
        for matcher, other, turns in zip(pair, reversed(pair), self.turns, strict=True):
            if matcher is self.two_sided and turns:
                await self._change()
            turn = await self._turn(matcher, requests)
            other.index.discard(*(JobId(match.job) for match in turn.run.matches))
            turns.append(turn)

    async def _turn(self, matcher: Matcher, requests: int) -> Turn:
        # Pilots are numbered by who they are and how often they asked: in each turn the same begin.
        first = -(-len(self._asking) // POPULATION) * POPULATION
        self._asking = self._work.pilots * (-(-(first + requests) // POPULATION))
        del self._asking[first + requests :]
        asked = batches(self._asking, range(first, first + requests), self._batch)
        postgres, before = self._at.cpu_seconds(), matcher.index.evaluated
        began, cpu = time.perf_counter(), time.process_time()
        if matcher is self.two_sided:
            await matcher.elements.refresh()
        heard, heard_cpu = time.perf_counter() - began, time.process_time() - cpu
        served = await matcher.serve(asked, self._in_flight)
        served.seconds += heard
        served.cpu += heard_cpu
        return Turn(
            served, self._at.cpu_seconds() - postgres, matcher.index.evaluated - before, list(self._elements)
        )

    async def _change(self) -> None:
        changed = self._rng.sample(range(len(self._elements)), int(CHANGED * len(self._elements)))
        for n in changed:
            self._elements[n] = later(self._elements[n], self._rng)
        await self._advertise([self._elements[n] for n in changed])

    async def _advertise(self, elements: Sequence[Element]) -> None:
        self._advertised += 1
        at = BEGIN + timedelta(minutes=self._advertised)
        async with self._at.db.transaction() as tx:
            await handling.handle(tx, [Delivery(ANYONE, _said(each, at)) for each in elements])

    # --- whether it is right ----------------------------------------------------------------------

    async def check(self) -> None:
        """Raise InvalidError unless every match is one, by both sides where both were asked, and is so in the database."""
        work = self._work
        runs = [turn.run for turns in self.turns for turn in turns]
        matches = [match for each in runs for match in each.matches]
        taken = check(work.queues, work.jobs, self._asking, matches)
        waiting = np.bincount(work.jobs.queue, minlength=len(work.queues))
        left = [n for n in range(len(work.queues)) if waiting[n] > taken[n]]
        for turn in self.turns[0]:
            given = [(self._asking[each.pilot], self._queue(each)) for each in turn.run.matches[:SAMPLE]]
            nothing = [(self._asking[n], None) for n in turn.run.refused[:SAMPLE]]
            check_best(work.queues, left, [*given, *nothing])
        for turn in self.turns[1]:
            self._check_both(turn, left)
        for matcher in (self.plain, self.two_sided):
            if len(matcher.index) != len(work.jobs) - len(matches):
                raise InvalidError(
                    f"the index holds {len(matcher.index)} jobs, and not all others were offered"
                )
        await check_stored(self._at.db, matches)

    def _check_both(self, turn: Turn, left: Sequence[int]) -> None:
        judge = Judge(self._work.queues, self._work.pilots, turn.elements)
        for match in turn.run.matches:
            fault = judge.mismatch(self._queue(match), match.pilot % POPULATION)
            if fault:
                raise InvalidError(f"job {match.job} should not have gone to pilot {match.pilot}: {fault}")
        for match in turn.run.matches[:SAMPLE]:
            self._check_best(judge, left, match.pilot % POPULATION, self._queue(match))
        for number in turn.run.refused[:SAMPLE]:
            self._check_best(judge, left, number % POPULATION, None)

    def _queue(self, match: Match) -> int:
        return int(self._work.jobs.queue[match.job - 1])

    def _check_best(self, judge: Judge, left: Sequence[int], pilot: int, given: int | None) -> None:
        """Raise InvalidError if there was a job of a higher CPU segment, or one of the same that the element likes better."""
        queues, asked = self._work.queues, self._work.pilots[pilot]
        least = (queues[given].cpu_time, judge.rank(given, pilot)) if given is not None else (0, 0.0)
        for place in left:
            if queues[place].cpu_time < least[0] or mismatch(queues[place], asked):
                continue
            better = (queues[place].cpu_time, judge.rank(place, pilot)) > least
            if better and not judge.mismatch(place, pilot):
                raise InvalidError(
                    f"{asked} got one of {least}, though queue {place} has jobs that fit it better"
                )

    # --- what was found ---------------------------------------------------------------------------

    def figures(self) -> Figures:
        """Return the rates of both, and what the expressions cost."""
        plain, both = (turns[1:] for turns in self.turns)
        ratios = [_rate(two) / _rate(one) for one, two in zip(plain, both, strict=True)]
        return {
            "ratio": median(ratios),
            "all_ratios": [round(each, 3) for each in ratios],
            "plain": _figures(self.turns[0], self._loaded[0]),
            "two_sided": _figures(self.turns[1], self._loaded[1])
            | {
                "distinct_requirements": len({each.requirements for each in self._work.queues} - {""}),
                "pairs_evaluated_cold": self.turns[1][0].evaluated,
                "pairs_evaluated": sum(turn.evaluated for turn in self.turns[1]),
            },
        }


def _figures(turns: Sequence[Turn], loaded: float) -> Figures:
    cold, *warm = turns
    times = [1e3 * seconds for turn in warm for seconds in turn.run.batches]
    return {
        "requests": sum(turn.run.asked for turn in warm),
        "matches": sum(len(turn.run.matches) for turn in warm),
        "matches_per_second": median([_rate(turn) for turn in warm]),
        "all_matches_per_second": [round(_rate(turn)) for turn in warm],
        "batch_p50_ms": percentile(times, 0.5),
        "batch_p99_ms": percentile(times, 0.99),
        "cpu_us_per_match": {
            "python": median([1e6 * turn.run.cpu / len(turn.run.matches) for turn in warm]),
            "postgres": median([1e6 * turn.postgres / len(turn.run.matches) for turn in warm]),
        },
        "index_seconds": round(loaded, 2),
        "first_requests": cold.run.asked,
        "first_requests_cpu_seconds": round(cold.run.cpu, 2),
    }


def _rate(turn: Turn) -> float:
    return len(turn.run.matches) / turn.run.seconds


def _bare(queue: Queue) -> Queue:
    return replace(queue, requirements="", rank="", attributes={})


def _said(element: Element, at: datetime) -> Advertise:
    """Return an element's ad; what a pilot offers is told by its requests alone."""
    return Advertise(
        element=ComputingElement(
            site=element.site, ce=element.ce, slots=1_000, max_cpu_time=300_000, setup="default"
        ),
        advertised_at=at,
        lifetime_seconds=86_400,
        attributes=element.attributes,
        requirements=element.requirements,
        rank=element.rank,
    )


if __name__ == "__main__":
    run(
        "two_sided",
        measure,
        waiting=1_000_000,
        queues=10_000,
        expressions=300,
        elements=400,
        requests=60_000,
        runs=3,
        batch=1_024,
        in_flight=2,
    )
