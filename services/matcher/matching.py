"""Handles match requests: draws jobs from the queue index, claims them in Postgres, and answers with offers or the reason for none."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from types import MappingProxyType

import msgspec
import numpy as np
import structlog

from services.matcher.filling import Drawn, Filling
from services.matcher.limit_gate import LimitGate
from services.matcher.pilot_allowance import AskingPilots
from services.matcher.standing_requests import StandingRequests
from services.matcher.turns import QueueTurns
from services.matcher.verified_request import VerifiedRequest, bind, may_ask
from wms.auth.principal import Principal
from wms.bounded_cache import BoundedCache
from wms.bus.consumer import Delivery
from wms.db import block, claim, task_queue
from wms.db.claim import ClaimedJob, JobClaim
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.ids import JobId, PilotId, RequestId, TaskQueueId
from wms.jobdesc.offer_size import OFFER_LIMIT
from wms.lease import LeaseDurations
from wms.matching.binding import is_bound
from wms.matching.shares import VoGroup
from wms.messages.match_requests import MatchRequest
from wms.messages.site_inbox import NoMatch, Offer, inbox
from wms.queue_index.index import Pick, QueueIndex
from wms.site import Resource

log = structlog.get_logger()

PAUSES = 16
"""The most pauses for other work while queues are judged for one batch of requests. Later batches judge the rest, the dearest expressions."""
ROUNDS = 32
"""The largest number of draws for one batch of requests. A draw is repeated if other matchers took drawn jobs, or users cancelled them."""
RESOURCES_LIMIT = 20_000
AHEAD_EXPECTED = 16
"""About how many short jobs a request is given beyond those that start at once."""
FEW_SLOTS = 16
"""A batch that asks for fewer jobs than this draws among the oldest of all waiting jobs, because it seldom conflicts with other matchers."""


def leeway_for(slots: int) -> int:
    """Return how many younger jobs this matcher may give out before an older job that another matcher prefers.

    Matchers that run in parallel each prefer a share of the jobs. `slots` is the number of jobs that a batch of requests asks for. The leeway equals
    it, since other matchers give out as many meanwhile. Without leeway, all would draw the same oldest jobs, most of them in vain.
    """
    return 0 if slots < FEW_SLOTS else slots


class Matching:
    """Handles batches of match requests (`wms.match.requests`) from pilots."""

    def __init__(
        self,
        index: QueueIndex,
        gate: LimitGate,
        terms: LeaseDurations,
        retry_after_seconds: float,
        rng: np.random.Generator,
        *,
        leeway: Callable[[int], int] = leeway_for,
        pilots: AskingPilots | None = None,
        is_shared: Callable[[VoGroup], bool] = lambda _: False,
        likely_seconds: Mapping[TaskQueueId, float] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Build a handler. `is_shared` returns whether a group's members share their jobs; `clock` returns monotonic seconds.

        `pilots` says which pilots may be given jobs, and how many; None (in tests and benchmarks) means any with a valid token. `leeway` returns how
        many younger jobs may be given out before older ones, for a number of slots (`leeway_for`). `likely_seconds` has how long jobs of a queue take
        a slot; others count as long.
        """
        self._leeway = leeway
        self._pilots = pilots
        self._index = index
        self._gate = gate
        self._terms = terms
        self._retry_after_seconds = retry_after_seconds
        self._is_shared = is_shared
        self._resources = BoundedCache[tuple[str | None, str, bool, Resource], Resource](RESOURCES_LIMIT)
        """A cache of resources corrected by tokens (`bind`), by token and described resource."""
        self.standing = StandingRequests(retry_after_seconds, clock)
        self._turns = QueueTurns(index, rng, likely_seconds)
        self.tell_others = False
        """Whether other matchers run. They must then be told which jobs no longer wait."""
        self.matched = 0
        self.by_queue: Counter[TaskQueueId] = Counter()
        """How many jobs were matched, by queue, since these counts were last written (`services.matcher.queue_stats`)."""

    async def handle(self, tx: Transaction, batch: Sequence[Delivery[MatchRequest]]) -> None:
        """Answer each match request of a batch with an offer, or with the reason why there is no job for it.

        Offers are claimed, and answers sent, in the given transaction. A repeated request gets the same offer again. A request that names another
        pilot than its token is ignored. Requests of unknown or ended pilots are refused.
        """
        self._gate.open_due()
        requests = self._bound(batch)
        offers = await self._offered(tx, requests) if requests else {}
        fresh = [request for request in requests.values() if request.request_id not in offers]
        if self._pilots is not None:
            fresh = await self._trusted(tx, self._pilots, fresh, requests)
        for claimed in await self._match(tx, fresh):
            offers.setdefault(claimed.request_id, []).append(claimed)
        for request in requests.values():
            self._answer(tx, request, offers.get(request.request_id, ()))
        if self._pilots is not None:
            self._note(tx, self._pilots, fresh, offers)
        self.standing.forget(each.pilot_id for each in requests.values())
        self.standing.keep(each for each in fresh if each.request_id not in offers and not each.asks_ahead)

    async def offer_to_idle(self, tx: Transaction, requests: Sequence[VerifiedRequest]) -> set[RequestId]:
        """Offer jobs for earlier requests that got none. Return the ids of those that get some now. No answer is sent to the others."""
        self._gate.open_due()
        offers: dict[RequestId, list[ClaimedJob]] = {}
        allowed = requests if self._pilots is None else await self._allowed(tx, self._pilots, requests)
        for claimed in await self._match(tx, allowed):
            offers.setdefault(claimed.request_id, []).append(claimed)
        for request in [each for each in allowed if each.request_id in offers]:
            self._answer(tx, request, offers[request.request_id])
        if self._pilots is not None:
            self._note(tx, self._pilots, allowed, offers)
        return set(offers)

    async def _trusted(
        self,
        tx: Transaction,
        pilots: AskingPilots,
        fresh: Sequence[VerifiedRequest],
        requests: dict[RequestId, VerifiedRequest],
    ) -> list[VerifiedRequest]:
        """Return the requests of known pilots, each reduced to the number of jobs that its pilot may be offered. The other requests are refused."""
        trusted = await self._allowed(tx, pilots, fresh)
        for request_id in {each.request_id for each in fresh} - {each.request_id for each in trusted}:
            request = requests.pop(request_id)
            self._deny(tx, request, pilots.refusal(request.pilot_id))
        return trusted

    @staticmethod
    async def _allowed(
        tx: Transaction, pilots: AskingPilots, requests: Sequence[VerifiedRequest]
    ) -> list[VerifiedRequest]:
        """Return the requests of pilots that may be offered jobs, each reduced to the number of jobs that its pilot may be offered."""
        await pilots.look(tx, [(each.pilot_id, _expected(each)) for each in requests])
        rooms = [(each, pilots.room(each.pilot_id)) for each in requests]
        return [msgspec.structs.replace(each, most=room) for each, room in rooms if room]

    def _deny(self, tx: Transaction, request: VerifiedRequest, refusal: str) -> None:
        code = "PILOT_UNKNOWN" if refusal else "OFFERS_OPEN"
        reason = refusal or "the pilot has as many jobs, or offers, as its slots allow"
        log.debug("request refused", pilot=request.pilot_id, code=code)
        answer = NoMatch(
            pilot_id=request.pilot_id,
            request_id=request.request_id,
            code=code,
            reason=reason,
            retry_after_seconds=max(self._retry_after_seconds, 1.0),
        )
        tx.reply(inbox(request.resource.site), request.pilot_id, answer)

    @staticmethod
    def _note(
        tx: Transaction,
        pilots: AskingPilots,
        fresh: Sequence[VerifiedRequest],
        offers: Mapping[RequestId, Sequence[ClaimedJob]],
    ) -> None:
        given = Counter[PilotId]()
        for request in fresh:
            given[request.pilot_id] += len(offers.get(request.request_id, ()))
        pilots.offered(given)
        tx.on_failure(partial(pilots.take_back, given))

    @staticmethod
    async def _offered(
        tx: Transaction, requests: Mapping[RequestId, VerifiedRequest]
    ) -> dict[RequestId, list[ClaimedJob]]:
        """Return the offers that these requests got when they were first handled, by request id. A request of another pilot gets none."""
        again = [request_id for request_id, request in requests.items() if request.again]
        found = await claim.offered(tx, again) if again else {}
        return {each: jobs for each, jobs in found.items() if jobs[0].pilot_id == requests[each].pilot_id}

    def _bound(self, batch: Iterable[Delivery[MatchRequest]]) -> dict[RequestId, VerifiedRequest]:
        requests = {}
        for delivery in batch:
            principal, request = delivery.principal, delivery.message
            if principal is None or not may_ask(principal, request):
                log.warning("request refused: another pilot's token", pilot=request.pilot_id)
                continue
            resource = self._resource(principal, request.resource)
            requests[request.request_id] = VerifiedRequest(
                request.request_id,
                request.pilot_id,
                resource,
                request.slots,
                request.packed,
                request.again,
                request.seconds,
            )
        return requests

    def _resource(self, principal: Principal, said: Resource) -> Resource:
        shared = "generic_pilot" not in principal.rights and self._is_shared((principal.vo, principal.group))
        key = (principal.pilot_id, principal.token_id, shared, said)
        known = self._resources.get(key)
        if known is None:
            known = self._resources[key] = bind(principal, said, job_sharing=shared)
        return known

    async def _match(self, tx: Transaction, requests: Sequence[VerifiedRequest]) -> list[ClaimedJob]:
        await self._decide(requests)
        self._index.leeway = self._leeway(sum(_expected(request) for request in requests))
        open_ = [Filling(request, self._turns) for request in requests]
        taken: list[ClaimedJob] = []
        counted: Counter[TaskQueueId] = Counter()
        refused: list[Pick] = []
        for first in (True, *[False] * (ROUNDS - 1)):
            drawn = {each.pick.job_id: (filling, each) for filling in open_ for each in filling.draw()}
            if not drawn:
                break
            tx.on_failure(partial(self._index.restore, [each.pick for _, each in drawn.values()]))
            asked = [(_claim(filling.request, each.pick), each.pick) for filling, each in drawn.values()]
            claimed = await self._gate.claim(tx, asked, self._claim, first=first)
            taken += claimed
            counted.update([each.tq_id for each in claimed])
            if len(claimed) == len(drawn):
                break
            open_, missed = _still_open(drawn, {each.job_id for each in claimed})
            refused += missed
        self._keep_bound(refused)
        self.matched += len(taken)
        if self.tell_others:
            task_queue.tell_left(tx, [each.job_id for each in taken])
        self.by_queue.update(counted)
        tx.on_failure(partial(self.by_queue.subtract, counted))
        return taken

    async def _decide(self, requests: Sequence[VerifiedRequest]) -> None:
        """Judge which queues fit these requests, with pauses. Some may stay undecided, and are not matched by this batch."""
        pauses = PAUSES
        self._index.effort.renew()
        for request in requests:
            while not self._index.decide(request.resource) and pauses:
                pauses -= 1
                await asyncio.sleep(0)
                self._index.effort.renew()

    def _keep_bound(self, refused: Iterable[Pick]) -> None:
        """Put jobs bound to one pilot back into the index if they could not be claimed, and still wait.

        The request may have come from the pilot of an earlier placement.
        """
        waiting = [each for each in refused if each.tq_id in self._index]
        self._index.restore(each for each in waiting if is_bound(self._index.requirements(each.tq_id)))

    async def _claim(
        self, tx: Transaction, claims: Sequence[JobClaim], generation: int
    ) -> list[ClaimedJob] | None:
        """Claim jobs and return them. Return None if elements began to state limits since `generation`.

        A job of an array may have no row yet, but be part of a block. It gets its row now.
        """
        claimed = await claim.claim(tx, claims, self._terms.offer_seconds, generation)
        if claimed is None or len(claimed) == len(claims):
            return claimed
        found = {each.job_id for each in claimed}
        missed = [each for each in claims if each.job_id not in found]
        if await block.expand(tx, [each.job_id for each in missed]):
            claimed += await claim.claim(tx, missed, self._terms.offer_seconds, generation) or []
        return claimed

    def _answer(self, tx: Transaction, request: VerifiedRequest, claimed: Sequence[ClaimedJob]) -> None:
        topic = inbox(request.resource.site)
        if not claimed:
            tx.reply(topic, request.pilot_id, self._nothing_for(request))
            return
        # A pilot starts jobs in this order: what is not known to be short must not wait behind others.
        for part in _parts(sorted(claimed, key=self._likely, reverse=True)):
            offer = Offer(
                pilot_id=request.pilot_id,
                request_id=request.request_id,
                jobs=tuple(each.offered(self._turns.likely_seconds.get(each.tq_id)) for each in part),
                hold_seconds=self._terms.offer_seconds,
            )
            try:
                tx.reply(topic, request.pilot_id, offer)
            except Rejected as fault:
                # A job that was submitted before such sizes were refused. Its offer expires, and no other fails with it.
                jobs = [each.job_id for each in part]
                log.error("job cannot be offered", jobs=jobs, fault=fault.message)  # noqa: TRY400 - no fault of ours

    def _likely(self, job: ClaimedJob) -> float:
        return self._turns.likely_seconds.get(job.tq_id, inf)

    def _nothing_for(self, request: VerifiedRequest) -> NoMatch:
        if request.asks_ahead:
            code, reason = "NO_SHORT_JOB", "no short job is next, and no slot is free"
        else:
            # Pilots get no examples, as these are others' jobs.
            why = self._index.why_nothing(request.resource, with_examples=False)
            code = "REFUSED" if why.refusal else "NO_JOBS" if not why.waiting_jobs else "NO_FIT"
            reason = why.for_pilots()[:2_000]
        return NoMatch(
            pilot_id=request.pilot_id,
            request_id=request.request_id,
            code=code,
            reason=reason,
            retry_after_seconds=self._retry_after_seconds,
        )


def _expected(request: VerifiedRequest) -> int:
    """Return about how many jobs a request is given."""
    return (0 if request.asks_ahead else request.slots) + (AHEAD_EXPECTED if request.seconds else 0)


def _still_open(
    drawn: Mapping[JobId, tuple[Filling, Drawn]], claimed: Collection[JobId]
) -> tuple[list[Filling], list[Pick]]:
    """Return the requests that lost drawn jobs to other matchers, each with the room that its claimed jobs leave, and the lost picks."""
    lost: dict[int, Filling] = {}
    picks = []
    for job_id, (filling, each) in drawn.items():
        if job_id in claimed:
            filling.claimed([each])
        else:
            lost[id(filling)] = filling
            picks.append(each.pick)
    return list(lost.values()), picks


def _claim(request: VerifiedRequest, pick: Pick) -> JobClaim:
    resource = request.resource
    return JobClaim(
        pick.job_id, request.pilot_id, request.request_id, resource.site, resource.grid_ce, pick.tq_id
    )


def _parts(claimed: Sequence[ClaimedJob]) -> Iterable[Sequence[ClaimedJob]]:
    if len(claimed) == 1:
        yield claimed
        return
    part: list[ClaimedJob] = []
    size = 0
    for each in claimed:
        mine = len(each.description) + len(each.parameters or "")
        if part and size + mine > OFFER_LIMIT:
            yield part
            part, size = [], 0
        part.append(each)
        size += mine
    if part:
        yield part
