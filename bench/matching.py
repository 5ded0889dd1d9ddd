"""How fast waiting jobs are matched by the matcher's own code and a durable Postgres; a peer, if named, does the same.

python -m bench.matching [--waiting N] [--queues N] [--requests N] [--runs N] [--batch N] [--in-flight N] [--peer dirac] [--json]

Measured is all that a batch of requests costs but the broker: selection, claim, lease, history, offsets, offers and events
through the outbox. Every match is checked, by a naive evaluator and in the database; a false one fails the benchmark.
"""

import asyncio
import gc
import itertools
import time
from collections.abc import Sequence

import msgspec
import numpy as np

from bench import insertion
from bench.measuring import Figures, machine, median, percentile, run
from bench.peers import find_peer
from bench.store import Store, store
from bench.validity import InvalidError, Match, check, check_best
from bench.workload import SHARING, VO, Jobs, Pilot, Queue, Shape, make_jobs, make_pilots, make_queues
from services.matcher.feed import Feed
from services.matcher.matching import Matching
from wms.auth.principal import Principal, Right
from wms.bus.consumer import Delivery
from wms.bus.kafka import Headers, Kafka, Settings
from wms.bus.relay import Relay
from wms.db import offset
from wms.db.database import Database
from wms.ids import PilotId, RequestId
from wms.lease import Terms
from wms.messages.requests import TOPIC, MatchRequest
from wms.messages.site_inbox import PREFIX, NoMatch, Offer, ToAgent
from wms.site import Resource
from wms.taskqueue.index import QueueIndex
from wms.taskqueue.shares import GroupShare

WARM_UP = 2_000
"""Requests before the first run: plans are made and caches filled, as in a matcher that has served for a minute."""
RUN_SECONDS = 30.0
"""A run that is not done by then counts as far as it went."""
SAMPLE = 100
"""Matches of each run that are held against every queue there is."""

Batch = list[Delivery[MatchRequest]]

_TOLD: msgspec.json.Decoder[ToAgent] = msgspec.json.Decoder(ToAgent)


class Nowhere(Kafka):
    """A broker that takes everything at once, and keeps what agents are told."""

    def __init__(self) -> None:
        super().__init__(Settings(), "bench")
        self.told: list[bytes] = []

    async def exists(self, topic: str) -> bool:
        return bool(topic)

    async def send_many(
        self, topic: str, keys: Sequence[bytes], payloads: Sequence[bytes], headers: Headers = ()
    ) -> None:
        assert len(keys) == len(payloads)
        assert not headers
        if topic.startswith(PREFIX):
            self.told += payloads


class Run(msgspec.Struct, kw_only=True):
    """What one run found."""

    asked: int
    seconds: float
    batches: list[float]
    """Seconds of each."""
    python_cpu: float
    postgres_cpu: float
    matches: list[Match]
    refused: list[int]
    """Pilots that got nothing."""


class Matcher:
    """A matcher in this process: its index, its handler, a relay that sends nowhere."""

    def __init__(self, at: Store) -> None:
        self._at = at
        self.nowhere = Nowhere()
        shares = {(VO, group): GroupShare(job_sharing=True) for group in SHARING}
        self.index = QueueIndex(groups=shares)
        self._feed = Feed(at.db, self.nowhere, self.index)
        self._matching = Matching(self.index, Terms(offer_seconds=3_600), 1.0, np.random.default_rng(4))
        self._numbers = itertools.count()

    async def load(self) -> float:
        """Fill the index as at a matcher's start; return the seconds that took."""
        began = time.perf_counter()
        await self._feed.fill()
        gc.freeze()
        return time.perf_counter() - began

    async def serve(self, batches: Sequence[Batch], in_flight: int) -> Run:
        """Handle the batches, so many transactions at once, for as long as a run may take."""
        relay = Relay(self._at.db, self.nowhere)
        relaying = asyncio.create_task(relay.run())
        self.nowhere.told.clear()
        left = list(reversed(batches))
        seconds: list[float] = []
        until = time.perf_counter() + RUN_SECONDS
        before, python, postgres = time.perf_counter(), time.process_time(), self._at.cpu_seconds()
        await asyncio.gather(*(self._lane(left, seconds, until) for _ in range(in_flight)))
        await relay.drain(30)
        ended = time.perf_counter()
        python, postgres = time.process_time() - python, self._at.cpu_seconds() - postgres
        relaying.cancel()
        await asyncio.gather(relaying, return_exceptions=True)
        matches, refused = _answers(self.nowhere.told)
        asked = sum(map(len, batches)) - sum(map(len, left))
        if len(matches) + len(refused) != asked:
            raise InvalidError(f"{asked} pilots asked, {len(matches) + len(refused)} answers were sent")
        return Run(
            asked=asked,
            seconds=ended - before,
            batches=seconds,
            python_cpu=python,
            postgres_cpu=postgres,
            matches=matches,
            refused=refused,
        )

    async def _lane(self, left: list[Batch], seconds: list[float], until: float) -> None:
        """Do as a consumer does: one transaction after another, each moving the offset of its messages."""
        feed = offset.Feed("bench", f"lane-{next(self._numbers)}", TOPIC)
        async with self._at.db.transaction() as tx:
            at = (await offset.begin(tx, feed, [0]))[0]
        while left and time.perf_counter() < until:
            batch = left.pop()
            began = time.perf_counter()
            async with self._at.db.transaction() as tx:
                await offset.advance(tx, feed, {0: (at, at + len(batch))})
                await self._matching.handle(tx, batch)
            at += len(batch)
            seconds.append(time.perf_counter() - began)


def _answers(told: Sequence[bytes]) -> tuple[list[Match], list[int]]:
    matches: list[Match] = []
    refused: list[int] = []
    for payload in told:
        match _TOLD.decode(payload):
            case Offer() as offer:
                matches += [Match(job.job_id, int(offer.pilot_id)) for job in offer.jobs]
            case NoMatch() as nothing:
                refused.append(int(nothing.pilot_id))
    return matches, refused


def deliveries(pilots: Sequence[Pilot], numbers: range) -> Batch:
    """Return the requests of these pilots as a consumer hands them on; a pilot's id is its number."""
    return [_delivery(pilots[n], n) for n in numbers]


def _delivery(pilot: Pilot, number: int) -> Delivery[MatchRequest]:
    rights = {Right.JOB_SHARING} if pilot.group in SHARING else set()
    principal = Principal(
        kind="pilot",
        owner=pilot.owner or "bench",
        group=pilot.group or "pilot",
        vo=VO,
        rights=frozenset(rights if pilot.group else {Right.GENERIC_PILOT}),
        pilot_id=str(number),
        site=pilot.site,
        ce=pilot.ce,
        token_id="t",
        expires_at=4e9,
    )
    resource = Resource(
        setup="default",
        vo=VO,
        cpu_time=pilot.cpu_time,
        platforms=(pilot.platform,),
        job_types=pilot.job_types,
        tags=pilot.tags,
    )
    request = MatchRequest(
        request_id=RequestId(f"r-{number}"), pilot_id=PilotId(str(number)), resource=resource
    )
    return Delivery(principal, request)


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
    matcher = Matcher(at)
    filled = await matcher.load()
    done: list[Run] = []
    bounds = np.linspace(WARM_UP, len(pilots), runs + 1).astype(int).tolist()
    for first, last in itertools.pairwise([0, *bounds]):
        batches = [deliveries(pilots, range(n, min(n + batch, last))) for n in range(first, last, batch)]
        done.append(await matcher.serve(batches, in_flight))
    await check_all(at, matcher, kinds, jobs, pilots, done)
    return {
        **_figures(done[1:]),
        "load_seconds": round(loaded, 1),
        "index_seconds": round(filled, 2),
    }


def _figures(runs: Sequence[Run]) -> Figures:
    times = [1e3 * seconds for run in runs for seconds in run.batches]
    rates = [len(run.matches) / run.seconds for run in runs]
    return {
        "requests": sum(run.asked for run in runs),
        "matches": sum(len(run.matches) for run in runs),
        "nothing_found": sum(len(run.refused) for run in runs),
        "matches_per_second": median(rates),
        "all_matches_per_second": [round(rate) for rate in rates],
        "batch_p50_ms": percentile(times, 0.5),
        "batch_p99_ms": percentile(times, 0.99),
        "cpu_us_per_match": {
            "python": median([1e6 * run.python_cpu / len(run.matches) for run in runs]),
            "postgres": median([1e6 * run.postgres_cpu / len(run.matches) for run in runs]),
        },
    }


async def check_all(
    at: Store,
    matcher: Matcher,
    kinds: Sequence[Queue],
    jobs: Jobs,
    pilots: Sequence[Pilot],
    runs: Sequence[Run],
) -> None:
    """Raise InvalidError unless every match fits, is the only one of its job, and is so in the database."""
    matches = [match for run in runs for match in run.matches]
    taken = check(kinds, jobs, pilots, matches)
    waiting = np.bincount(jobs.queue, minlength=len(kinds))
    left = [n for n in range(len(kinds)) if waiting[n] > taken[n]]
    for each in runs:
        given = [(pilots[match.pilot], int(jobs.queue[match.job - 1])) for match in each.matches[:SAMPLE]]
        nothing = [(pilots[n], None) for n in each.refused[:SAMPLE]]
        check_best(kinds, left, [*given, *nothing])
    await check_stored(at.db, matches)
    if len(matcher.index) != len(jobs) - len(matches):
        raise InvalidError(f"the index holds {len(matcher.index)} of {len(jobs) - len(matches)} waiting jobs")


FAULTY = """
    select g.job_id, g.pilot_id, j.state, l.request_id, e.matches
    from unnest($1::bigint[], $2::text[]) as g(job_id, pilot_id)
    left join job j on j.job_id = g.job_id and j.pilot_id = g.pilot_id and j.state = 'Matched' and j.epoch = 1
    left join lease l on l.job_id = g.job_id and l.pilot_id = g.pilot_id and l.epoch = 1
                     and l.request_id = 'r-' || g.pilot_id
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
        faulty = await tx.fetch(FAULTY, [each.job for each in matches], [str(each.pilot) for each in matches])
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
        batch=512,
        in_flight=1,
        peer="",
    )
