"""Sends pilots by plan: what waits, what advertises itself and what is under way, read in one transaction; sent after it.

Pilots are written down before they are sent, under ids that we chose, so that a crash in between leaves none unknown.
One instance plans at a time; whoever finds the lock taken leaves it to the other.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Sequence

import structlog

from services.pilot_submitter.making import PilotMaker
from wms.db import ad, job, pilot, queue, task_queue
from wms.db.database import Database, Transaction
from wms.db.pilot import Followed, Pilot, Sent
from wms.dispatch.port import Dispatcher, Sighting
from wms.ids import PilotId, TaskQueueId
from wms.provisioning.demand import Waiting
from wms.provisioning.plan import Caps, Pilots, Plan, plan
from wms.site import ComputingElement
from wms.taskqueue.grouping import Requirements

log = structlog.get_logger()

SHARE_OF_TIME = 20
"""Planning for many queues takes time: it pauses so many times what it took, to use a twentieth of the database."""


class Provisioning:
    """Plans and sends pilots of one kind of dispatcher."""

    def __init__(
        self, db: Database, kind: str, dispatcher: Dispatcher, maker: PilotMaker, caps: Caps
    ) -> None:
        self._db = db
        self._kind = kind
        self._dispatcher = dispatcher
        self._maker = maker
        self._caps = caps
        self._requirements: dict[TaskQueueId, Requirements] = {}
        self._not_before = 0.0
        self._said: tuple[str, ...] = ()
        # Who is written down and not yet sent must not be taken for dead.
        self._sending = asyncio.Lock()

    async def provide(self) -> None:
        """Make one plan and carry it out."""
        if time.monotonic() < self._not_before:
            return
        async with self._sending:
            began = time.monotonic()
            async with self._db.transaction() as tx:
                sent, elements = await self._planned(tx) if await pilot.may_plan(tx) else ([], {})
            self._not_before = time.monotonic() + SHARE_OF_TIME * (time.monotonic() - began - 0.05)
            if sent:
                await self._send(sent, elements)

    async def _planned(self, tx: Transaction) -> tuple[list[Sent], dict[tuple[str, str], ComputingElement]]:
        elements = [each for each in await ad.fresh(tx) if each.dispatcher == self._kind]
        alive = await pilot.alive(tx)
        decided = plan(await self._waiting(tx), elements, _groups(alive), self._caps)
        self._say(decided)
        by_place = {(each.site, each.ce): each for each in elements}
        sent = [
            Sent(
                pilot_id=PilotId(f"p-{uuid.uuid4().hex[:16]}"),
                site=order.site,
                ce=order.ce,
                vo=order.vo,
                dispatcher=self._kind,
                slots=by_place[order.site, order.ce].slots_per_pilot,
                reason=order.reasons[0] if order.reasons else "",
            )
            for order in decided.orders
            for _ in range(order.count)
        ]
        await pilot.insert(tx, sent)
        return sent, by_place

    async def _waiting(self, tx: Transaction) -> list[Waiting]:
        watched = await queue.waiting(tx)
        counts = (
            await job.count_waiting(tx)
            if watched is None
            else {tq_id: each.jobs for tq_id, each in watched.items()}
        )
        unknown = counts.keys() - self._requirements.keys()
        if unknown:
            self._requirements.update(await task_queue.read(tx, unknown))
        return [Waiting(self._requirements[tq_id], count) for tq_id, count in counts.items()]

    def _say(self, decided: Plan) -> None:
        said = tuple(
            f"{each.site}/{each.ce}: {'; '.join(each.reasons)}" for each in decided.decisions if each.ordered
        )
        if said and said != self._said:
            log.info("pilots ordered", decisions=said)
        self._said = said

    async def _send(self, sent: Sequence[Sent], elements: dict[tuple[str, str], ComputingElement]) -> None:
        orders = [self._maker.order(each, elements[each.site, each.ce]) for each in sent]
        await self._note(await self._dispatcher.send(orders))

    async def follow(self) -> None:
        """Look how the pilots under way do; hurry the leases of those that are certainly dead."""
        async with self._sending:
            async with self._db.transaction() as tx:
                alive = [each for each in await pilot.alive(tx) if each.dispatcher == self._kind]
            sightings = await self._dispatcher.follow([each.pilot_id for each in alive])
        known = {each.pilot_id: each.state for each in alive}
        await self._note(each for each in sightings if _is_news(each, known[each.pilot_id]))

    async def _note(self, sightings: Iterable[Sighting]) -> None:
        news = list(sightings)
        if not news:
            return
        followed = [
            Followed(pilot_id=each.pilot_id, state=each.state, reference=each.reference, reason=each.reason)
            for each in news
        ]
        async with self._db.transaction() as tx:
            await pilot.update(tx, followed)
            await pilot.hurry_leases(tx, [each.pilot_id for each in news if each.ended])
        for each in news:
            log.info("pilot", pilot=each.pilot_id, state=each.state, reason=each.reason)


def _is_news(sighting: Sighting, known: str) -> bool:
    if sighting.state == "Running" and known in ("Running", "Draining", "Submitted"):
        return False
    return sighting.state != known


def _groups(alive: Iterable[Pilot]) -> list[Pilots]:
    groups: dict[tuple[str, str, str], list[Pilot]] = {}
    for each in alive:
        groups.setdefault((each.site, each.ce, each.vo), []).append(each)
    return [_group(place, pilots) for place, pilots in groups.items()]


def _group(place: tuple[str, str, str], pilots: Sequence[Pilot]) -> Pilots:
    count: Callable[..., int] = lambda *states: sum(each.state in states for each in pilots)  # noqa: E731 - a word for four uses
    return Pilots(
        site=place[0],
        ce=place[1],
        vo=place[2],
        submitted=count("Submitting", "Submitted"),
        waiting=count("Waiting"),
        running=count("Running", "Draining"),
        ending=count("Draining"),
        idle_slots=sum(max(0, each.slots - each.busy) for each in pilots if each.state == "Running"),
    )
