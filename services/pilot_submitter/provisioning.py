"""Plans and sends pilots: one transaction reads jobs, ads and pilots, and stores the planned pilots; they are sent after it.

Pilots are stored before they are sent, under ids that this service chose. So no pilot is unknown after a crash. One instance
plans at a time; another that finds the lock taken does nothing.
"""

import asyncio
import random
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import structlog
from msgspec.structs import replace

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints
from services.pilot_submitter.element_calls import ElementCalls
from services.pilot_submitter.free_slots import FreeSlots
from services.pilot_submitter.host_requests import HostRequests
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_limits import let_come, lowered
from services.pilot_submitter.pilot_supply import planned_supply
from services.pilot_submitter.pilot_tracking import PilotTracking
from wms.db import (
    ad,
    canary,
    ce_endpoint,
    ce_plan,
    ce_state,
    job,
    limit,
    pilot,
    pilot_order,
    queue_stats,
    share,
    task_queue,
)
from wms.db.ce_endpoint import EndpointRow
from wms.db.database import Database, Transaction
from wms.db.pilot import EqualPilots, NewPilot
from wms.db.share import SourcedShare
from wms.dispatch.port import PilotSighting
from wms.ids import CeId, PilotId, TaskQueueId
from wms.matching.binding import is_bound
from wms.matching.grouping import Requirements
from wms.matching.limits import LimitSet
from wms.matching.shares import VoGroup
from wms.provisioning.demand import Avoidance, QueuedWork
from wms.provisioning.health import State
from wms.provisioning.limit_headroom import LimitHeadroom, concerned
from wms.provisioning.plan import Choice, PilotCaps, Plan, PlannedPilots, plan
from wms.provisioning.plan_report import ElementDecision
from wms.provisioning.planning_turns import PlanningTurns
from wms.provisioning.private import Allocation, OrderedPilot, allocate
from wms.provisioning.private_groups import PrivateGroups
from wms.provisioning.purpose import Purpose
from wms.provisioning.supply import PilotSupply
from wms.site import ComputingElement, as_it_is, lasting, private, without_ad

log = structlog.get_logger()

LIVES_SECONDS = 30.0
"""After so many seconds the lifetimes of pilots are told again, in case an ad was forgotten and came anew. What is known is not written."""
IDLE_SILENT_SECONDS = 20.0
"""Seconds of silence after which a pilot without jobs counts as having no free slots; such a pilot reports every five seconds."""
FREE_SECONDS = 0.05
FORGOTTEN_OVER = 10_000
"""Cached task queues without waiting jobs are dropped if the cache has so many more than twice the queues in which jobs wait."""
SHARE_OF_TIME = 20
"""The pause after a plan, as a multiple of its CPU time beyond `FREE_SECONDS`. Wall time would delay pilots on a busy machine."""


class Provisioning:
    """Plans pilots for the waiting jobs, and sends them through all `endpoints`.

    `caps` bound the number of pilots. `choice` says how an element is chosen among those that a job fits.
    """

    def __init__(
        self,
        db: Database,
        endpoints: CeEndpoints,
        maker: PilotFactory,
        caps: PilotCaps,
        following: PilotTracking,
        *,
        choice: Choice = "room",
        calls: ElementCalls | None = None,
    ) -> None:
        """Build the planner; `calls` are how it sends pilots. None: each round waits for the slowest element."""
        self._db = db
        self._endpoints = endpoints
        self._maker = maker
        self._caps = caps
        self._choice: Choice = choice
        self._purposes: dict[PilotId, Purpose] = {}
        """A description of the jobs that each pilot of the last plan is sent for, by pilot."""
        self._following = following
        self._calls = calls or ElementCalls()
        self._asking = HostRequests(endpoints, endpoints.clock)
        self._endpoints_written: tuple[int, ...] | None = None
        self._mark = ""
        self._rng = random.Random().random
        self._requirements: dict[TaskQueueId, Requirements] = {}
        self._in_turn = PlanningTurns()
        self._not_before = 0.0
        self._said: tuple[str, ...] = ()
        self._written: dict[CeId, ElementDecision] | None = None
        self._lives_at = float("-inf")
        self._lives: dict[CeId, float] = {}
        """The stored lifetimes of pilots at the last plan's elements: seconds after its start at which a pilot takes no more jobs."""

    async def provide(self) -> None:
        """Make one plan, store its pilots and send them; do nothing while another instance plans, or in the pause after a plan."""
        if time.monotonic() < self._not_before:
            return
        began = time.process_time()
        with self._following.sending() as names:
            async with self._db.transaction() as tx:
                sent, elements = await self._planned(tx, names) if await pilot.may_plan(tx) else ([], {})
            if elements:
                await self._tell_lives(elements)
            took = time.process_time() - began
            self._not_before = time.monotonic() + SHARE_OF_TIME * (took - FREE_SECONDS)
            await self._send_all(sent, elements)

    async def _planned(
        self, tx: Transaction, names: set[PilotId]
    ) -> tuple[list[NewPilot], dict[CeId, ComputingElement]]:
        await self._write_endpoints(tx)
        self._mark = self._mark or await pilot.mark(tx)
        elements = {
            each.ce_id: lasting(each, self._maker.lifetime_seconds(endpoint))
            for each in await ad.fresh(tx)
            if (endpoint := self._endpoint(each))
        }
        waiting, left = await self._waiting(tx), await limit.pilots_left(tx)
        asked = sorted({each.requirements.cpu_segment for each in waiting})
        alive = await pilot.supply(
            tx, asked, idle_silent=IDLE_SILENT_SECONDS, busy_silent=self._following.silent_seconds
        )
        self._asking.seen(alive)
        groups = _private_groups(await share.sourced(tx), alive)
        pilots = [planned_supply(each, asked, groups.sharing) for each in alive]
        bounded, avoided = lowered(elements, alive, left), await self._avoided(tx, elements, left)
        allocation = await self._allocated(tx, bounded, pilots, avoided)
        decided = await asyncio.to_thread(
            plan,  # 30,000 characters of long expressions take 0.3 s
            waiting,
            bounded,
            [*pilots, *allocation.as_pilots(groups.sharing)],
            self._caps,
            self._rng,
            leeway=await _leeway(tx, waiting, elements),
            avoided=avoided,
            hosts=self._asking.hosts,
            choice=self._choice,
            private=groups.with_present(allocation.groups),
        )
        self._say(decided)
        await self._write(tx, decided)
        slots = FreeSlots(alive)
        ordered = [
            (self._ordered(each, element), Purpose())
            for each in allocation.pilots
            if (element := slots.take(each.element))
        ] + [
            (self._pilot(order, element), order.purpose)
            for order in decided.orders
            for _ in range(order.count)
            if (element := slots.take(elements[CeId(order.site, order.ce)]))
        ]
        sent = await let_come(tx, [each for each, _ in ordered])
        self._purposes = {each.pilot_id: purpose for each, purpose in ordered}
        self._asking.sent(sent)
        # Pilots that are stored and not yet sent must not be taken as dead.
        names.update(each.pilot_id for each in sent)
        await self._maker.store(tx, sent)
        return sent, elements

    async def _allocated(
        self,
        tx: Transaction,
        elements: Sequence[ComputingElement],
        pilots: Sequence[PilotSupply],
        avoided: Mapping[CeId, Avoidance],
    ) -> Allocation:
        """Return the private pilots to send for users' orders, none of them to `avoided` elements; store why other orders must wait."""
        open_ = await pilot_order.open_orders(tx)
        found = allocate(open_, elements, pilots, self._caps, avoided)
        now = {each.order_id: found.held.get(each.order_id, "") for each in open_}
        await pilot_order.hold(
            tx, {each.order_id: now[each.order_id] for each in open_ if each.held != now[each.order_id]}
        )
        return found

    async def _tell_lives(self, elements: Mapping[CeId, ComputingElement]) -> None:
        """Store the lifetimes of pilots at these elements, in seconds, where they have changed, in a transaction of its own."""
        lives = {
            place: self._maker.lifetime_seconds(endpoint)
            for place, element in elements.items()
            if (endpoint := self._endpoint(element))
        }
        if time.monotonic() - self._lives_at >= LIVES_SECONDS:
            self._lives, self._lives_at = {}, time.monotonic()
        news = {place: seconds for place, seconds in lives.items() if self._lives.get(place) != seconds}
        if news:
            async with self._db.transaction() as tx:
                await ad.set_pilot_lifetimes(tx, news)
        self._lives = lives

    def _ordered(self, ordered: OrderedPilot, element: ComputingElement) -> NewPilot:
        """Return a private pilot for a user's order, to be stored and sent."""
        order = ordered.order
        one = PlannedPilots(
            site=element.site,
            ce=element.ce,
            vo=order.vo,
            count=1,
            reasons=(f"order {order.order_id} of {order.owner}",),
            private=order.pilot_owner,
        )
        return replace(self._pilot(one, element), order_id=order.order_id)

    def _pilot(self, order: PlannedPilots, element: ComputingElement) -> NewPilot:
        endpoint, owner = self._endpoint(element), order.private
        offers = element.pilot_resource(vo=order.vo)
        if owner:
            offers = private(offers, owner, job_sharing=not owner.owner)
        return NewPilot(
            pilot_id=pilot.new_id(self._mark),
            site=order.site,
            ce=order.ce,
            vo=order.vo,
            dispatcher=element.dispatcher,
            slots=element.slots_per_pilot,
            reason="; ".join((*order.reasons[:1], *order.reasons[2:]))[:2_000],
            lifetime_seconds=self._maker.lifetime_seconds(endpoint) if endpoint else 0.0,
            asks=order.hosts.name if order.hosts else "",
            owner_group=owner.owner_group if owner else "",
            owner=owner.owner if owner else "",
            link=self._maker.link(endpoint) if endpoint else "kafka",
            resource=without_ad(as_it_is(offers, order.hosts.node if order.hosts else ())),
        )

    def _endpoint(self, element: ComputingElement) -> CeEndpoint | None:
        return self._endpoints.to(element.site, element.ce, element.dispatcher)

    async def _avoided(
        self, tx: Transaction, elements: Mapping[CeId, ComputingElement], left: Mapping[CeId, int]
    ) -> dict[CeId, Avoidance]:
        """Return why elements get no pilots, or only those for canaries (test jobs). `left` is how many more pilots each ad allows."""
        known = await ce_state.read(tx)
        tried = {CeId(each.site, each.ce) for each in await canary.unfinished(tx)}
        found = {}
        for place, element in elements.items():
            health, endpoint = ce_state.of(known, *place), self._endpoint(element)
            if endpoint is not None and not endpoint.open:
                found[place] = Avoidance("BACKOFF", f"backing-off: {endpoint.why_shut}")
            elif health.avoided:
                found[place] = Avoidance(_CODES[health.state], health.text(), place in tried)
            elif endpoint is not None and self._calls.is_busy(endpoint):
                found[place] = Avoidance(
                    "BACKOFF", "backing-off: it still takes the pilots of an earlier plan"
                )
            elif left.get(place, 1) <= 0:
                found[place] = Avoidance("LIMIT", "its ad lets no more pilots come", serves=True)
        return found

    async def _write(self, tx: Transaction, decided: Plan) -> None:
        """Store what the plan decided for each element, where that differs from the last plan. Elements that are gone are deleted."""
        now = {CeId(each.site, each.ce): each for each in decided.decisions}
        before = self._written or {}
        await ce_plan.write(tx, [each for place, each in now.items() if before.get(place) != each])
        if self._written is None or before.keys() != now.keys():
            await ce_plan.keep_only(tx, now.keys())
        tx.on_failure(self._forget_written)
        self._written = now

    async def _write_endpoints(self, tx: Transaction) -> None:
        """Store how requests for hosts are translated at each element, for services that judge elements, if a script's answers have changed."""
        revisions = self._endpoints.script_revisions()
        if revisions != self._endpoints_written:
            rows = [
                EndpointRow(*endpoint.place, ",".join(sorted(mapping.forwarded)), endpoint.asks_as_json())
                for endpoint, mapping in self._endpoints.asking()
            ]
            await ce_endpoint.write(tx, rows)
            tx.on_failure(self._forget_endpoints)
            self._endpoints_written = revisions

    def _forget_endpoints(self) -> None:
        self._endpoints_written = None

    def _forget_written(self) -> None:
        self._written = None

    async def _waiting(self, tx: Transaction) -> list[QueuedWork]:
        watched = await queue_stats.waiting(tx)
        counts = (
            await job.count_waiting(tx)
            if watched is None
            else {tq_id: each.jobs for tq_id, each in watched.items()}
        )
        unknown = counts.keys() - self._requirements.keys()
        if unknown:
            self._forget_gone(counts)
            self._requirements.update(await task_queue.read(tx, unknown))
        # A job that the broker placed gets a pilot of its own.
        required = {tq_id: each for tq_id in counts if not is_bound(each := self._requirements[tq_id])}
        looked_at = self._in_turn.choose(required)
        return [QueuedWork(each, counts[tq_id]) for tq_id, each in required.items() if tq_id in looked_at]

    def _forget_gone(self, waiting: Collection[TaskQueueId]) -> None:
        """Drop cached task queues in which nothing waits, once they are many: each brokered job has a queue of its own."""
        if len(self._requirements) > FORGOTTEN_OVER + 2 * len(waiting):
            known = self._requirements
            self._requirements = {each: known[each] for each in waiting if each in known}

    def _say(self, decided: Plan) -> None:
        said = tuple(
            f"{each.site}/{each.ce}: {'; '.join(each.reasons)}" for each in decided.decisions if each.ordered
        )
        if said and said != self._said:
            log.info("pilots ordered", decisions=said)
        self._said = said

    async def _send_all(self, sent: Sequence[NewPilot], elements: Mapping[CeId, ComputingElement]) -> None:
        """Send these pilots to their elements, to all elements at the same time. Slow elements take theirs beside the next plans."""
        by_endpoint: dict[CeEndpoint, list[NewPilot]] = {}
        for each in sent:
            endpoint = self._endpoint(elements[CeId(each.site, each.ce)])
            assert endpoint is not None, "planned for an open endpoint"
            by_endpoint.setdefault(endpoint, []).append(each)
        await self._calls.run(
            {each: self._send(each, elements[each.place], some) for each, some in by_endpoint.items()}
        )

    async def _send(self, endpoint: CeEndpoint, element: ComputingElement, sent: Sequence[NewPilot]) -> None:
        with self._following.sending() as names:
            names.update(each.pilot_id for each in sent)
            await self._submit(endpoint, element, sent)

    async def _submit(self, endpoint: CeEndpoint, element: ComputingElement, new: Sequence[NewPilot]) -> None:
        orders = [
            self._maker.order(
                each,
                element,
                endpoint,
                self._asking.request(each, endpoint, element.sized(each.slots)),
                self._purposes.get(each.pilot_id, Purpose()),
            )
            for each in new
        ]
        sightings = await endpoint.ask(endpoint.dispatcher.send(orders))
        if sightings is None:
            return  # some may have arrived, and tracking will find them
        endpoint.reached()
        self._note_refused(endpoint, new, sightings)
        await self._following.note(sightings)

    def _note_refused(
        self, endpoint: CeEndpoint, sent: Sequence[NewPilot], sightings: Sequence[PilotSighting]
    ) -> None:
        """Record refused pilots (`sightings`): one that requests special hosts at its class alone, any other one at its endpoint."""
        by_name = {each.pilot_id: each for each in sent}
        for each in sightings:
            if each.ended and by_name[each.pilot_id].asks:
                self._asking.refused(by_name[each.pilot_id], each.reason)
            elif each.ended:
                endpoint.lost(each.reason)


_CODES: Mapping[State, Literal["QUARANTINE", "BANNED", "DRAINING"]] = {
    "quarantined": "QUARANTINE",
    "probing": "QUARANTINE",
    "banned": "BANNED",
    "draining": "DRAINING",
}


async def _leeway(tx: Transaction, waiting: Sequence[QueuedWork], places: Iterable[CeId]) -> LimitHeadroom:
    """Return how many more jobs of the waiting work the configured limits let start at these elements."""
    limits = LimitSet(limit.holding(await limit.sourced(tx)))
    if not limits:
        return LimitHeadroom()
    keys = concerned(limits, [each.requirements for each in waiting], list(places))
    return LimitHeadroom(limits, await limit.counts(tx, keys))


def _private_groups(said: Mapping[VoGroup, SourcedShare], alive: Iterable[EqualPilots]) -> PrivateGroups:
    return PrivateGroups(
        senders=frozenset(group for group, each in said.items() if each.share.private_pilots),
        sharing=frozenset(group for group, each in said.items() if each.share.job_sharing),
        present=frozenset((each.vo, each.owner_group) for each in alive if each.owner_group),
    )
