"""The matcher's own code in this process, over a durable Postgres: all that a batch of requests costs but the broker."""

import asyncio
import itertools
import os
import time
from collections.abc import Sequence
from functools import cache, partial

import msgspec
import numpy as np

from bench.validity import InvalidError, Match
from bench.workload import POPULATION, SHARING, VO, Pilot
from services.matcher.ads import AdSync
from services.matcher.index_sync import IndexSync
from services.matcher.limit_gate import LimitGate
from services.matcher.matching import Matching, leeway_for
from wms.auth.orders import OrderKeys, SignedOrder
from wms.auth.principal import Principal, Right
from wms.auth.service_signatures import ServiceSignatures
from wms.bus.consumer import Delivery
from wms.bus.kafka import Headers, Kafka, KafkaSettings
from wms.bus.relay import Relay
from wms.db import offset
from wms.db.database import Database, Transaction
from wms.ids import PilotId, RequestId
from wms.lease import LeaseDurations
from wms.matching.shares import GroupShare
from wms.messages.match_requests import TOPIC, MatchRequest
from wms.messages.site_inbox import PREFIX, NoMatch, Offer, ToAgent
from wms.queue_index.index import QueueIndex
from wms.runtime import clock
from wms.runtime.process import collect_young_alone
from wms.site import Resource

RUN_SECONDS = 30.0
"""A run that is not done by then counts as far as it went."""

Batch = list[Delivery[MatchRequest]]

KEYS = OrderKeys([b"k" * 32])
NOTICES = ServiceSignatures(KEYS, clock.timestamp)

_TOLD: msgspec.json.Decoder[ToAgent] = msgspec.json.Decoder(ToAgent)


class Nowhere(Kafka):
    """A broker that takes everything at once, and keeps what agents are told."""

    def __init__(self) -> None:
        super().__init__(KafkaSettings(), "bench")
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
    cpu: float
    """Seconds of this process."""
    matches: list[Match]
    refused: list[int]
    """Pilots that got nothing."""

    @property
    def per_second(self) -> float:
        """Matches a second."""
        return len(self.matches) / self.seconds


class Matcher:
    """A matcher in this process: its index, its handler, a relay that sends nowhere."""

    def __init__(
        self, db: Database, seed: int = 4, *, part: tuple[int, int] = (0, 1), exact: bool = False
    ) -> None:
        self._db = db
        self.nowhere = Nowhere()
        shares = {(VO, group): GroupShare(job_sharing=True) for group in SHARING}
        self.index = QueueIndex(groups=shares)
        self.index.set_part(*part)
        self._feed = IndexSync(db, self.nowhere, self.index, NOTICES)
        self.elements = AdSync(db, self.index)
        gate = LimitGate(self.index, time.monotonic)
        self._matching = Matching(
            self.index,
            gate,
            LeaseDurations(offer_seconds=3_600),
            1.0,
            np.random.default_rng(seed),
            leeway=(lambda _: 0) if exact else leeway_for,
            is_shared=shares.__contains__,
        )
        self._numbers = itertools.count()

    async def load(self) -> float:
        """Fill the index as at a matcher's start; return the seconds that took."""
        began = time.perf_counter()
        await self._feed.fill()
        await self.elements.refresh()
        collect_young_alone()
        return time.perf_counter() - began

    async def serve(self, batches: Sequence[Batch], in_flight: int) -> Run:
        """Handle the batches, so many transactions at once, for as long as a run may take."""
        relay = Relay(self._db, self.nowhere, KEYS, NOTICES)
        relaying = asyncio.create_task(relay.run())
        self.nowhere.told.clear()
        left = list(reversed(batches))
        seconds: list[float] = []
        until = time.perf_counter() + RUN_SECONDS
        before, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(self._lane(left, seconds, until) for _ in range(in_flight)))
        await relay.drain(30)
        passed, cpu = time.perf_counter() - before, time.process_time() - cpu
        relaying.cancel()
        await asyncio.gather(relaying, return_exceptions=True)
        handled = batches[: len(batches) - len(left)]
        asked = {_number(each.message.request_id) for batch in handled for each in batch}
        matches, refused = _answers(self.nowhere.told, asked)
        if len(matches) + len(refused) != len(asked):
            raise InvalidError(f"{len(asked)} pilots asked, {len(matches) + len(refused)} were answered")
        return Run(
            asked=len(asked),
            seconds=passed,
            batches=seconds,
            cpu=cpu,
            matches=matches,
            refused=refused,
        )

    async def _lane(self, left: list[Batch], seconds: list[float], until: float) -> None:
        """Do as a consumer does: one transaction after another, each moving the offset of its messages."""
        feed = offset.ConsumedTopic("bench", f"lane-{os.getpid()}-{next(self._numbers)}", TOPIC)
        async with self._db.transaction() as tx:
            at = (await offset.begin(tx, feed, [0]))[0]
        while left and time.perf_counter() < until:
            batch = left.pop()
            began = time.perf_counter()
            await self._db.attempt(partial(self._do, feed, at, batch))
            at += len(batch)
            seconds.append(time.perf_counter() - began)

    async def _do(self, feed: offset.ConsumedTopic, at: int, batch: Batch, tx: Transaction) -> None:
        await offset.advance(tx, feed, {0: (at, at + len(batch))})
        await self._matching.handle(tx, batch)


def _answers(told: Sequence[bytes], asked: set[int]) -> tuple[list[Match], list[int]]:
    """Return what came of these requests. The same may be told twice, and a relay sweeps up what others are late to send."""
    matches: dict[Match, None] = {}
    refused: dict[int, None] = {}
    for payload in told:
        match _TOLD.decode(msgspec.json.decode(payload, type=SignedOrder).order):
            case Offer() as offer if _number(offer.request_id) in asked:
                matches |= {Match(job.job_id, _number(offer.request_id)): None for job in offer.jobs}
            case NoMatch() as nothing if _number(nothing.request_id) in asked:
                refused[_number(nothing.request_id)] = None
    return list(matches), list(refused)


def _number(request_id: str) -> int:
    return int(request_id.removeprefix("r-"))


def batches(pilots: Sequence[Pilot], numbers: range, size: int) -> list[Batch]:
    """Return the requests of these pilots in batches, as a consumer hands them on."""
    return [
        [_delivery(pilots[n], n) for n in numbers[first : first + size]]
        for first in range(0, len(numbers), size)
    ]


def _delivery(pilot: Pilot, number: int) -> Delivery[MatchRequest]:
    principal = _principal(number % POPULATION, pilot)
    assert principal.pilot_id is not None
    resource = Resource(
        setup="default",
        vo=VO,
        cpu_time=pilot.cpu_time,
        platforms=(pilot.platform,),
        job_types=pilot.job_types,
        tags=pilot.tags,
    )
    request = MatchRequest(
        request_id=RequestId(f"r-{number}"), pilot_id=PilotId(principal.pilot_id), resource=resource
    )
    return Delivery(principal, request)


@cache
def _principal(number: int, pilot: Pilot) -> Principal:
    """Return who a pilot's token says it is: remembered, as by whoever verifies tokens."""
    return Principal(
        kind="pilot",
        owner=pilot.owner or "bench",
        group=pilot.group or "pilot",
        vo=VO,
        rights=frozenset() if pilot.group else frozenset({Right.GENERIC_PILOT}),
        pilot_id=f"p-{number}",
        site=pilot.site,
        ce=pilot.ce,
        token_id=f"t-{number}",
        expires_at=4e9,
    )
