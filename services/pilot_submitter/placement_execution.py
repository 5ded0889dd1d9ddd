"""Carries out placements: sends a pilot for each, which may run only the job that the resource broker placed.

A pilot is stored with its placement before it is sent. After a crash, pilot tracking finds out whether the pilot arrived. The
placement then fails or goes on (`placement_watch`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import structlog
from msgspec.structs import replace

from services.pilot_submitter.bound_pilot import bound_pilot, purpose_of, request_of, window_of
from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints
from services.pilot_submitter.direct_staging import direct_fault
from services.pilot_submitter.direct_trust import distrust_words, trusts
from services.pilot_submitter.element_calls import ElementCalls
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_limits import let_come
from services.pilot_submitter.pilot_tracking import PilotTracking
from wms import faultpoint
from wms.broker.placement import PlacementEvent, PlacementFault, PlacementState
from wms.db import ad, pilot, placement
from wms.db.database import Database, Transaction
from wms.db.pilot import NewPilot
from wms.db.placement import PlacedWork, Placement, PlacementFailure, PlacementMark
from wms.dispatch.port import PilotRequest, PilotSighting
from wms.dispatch.reservation import RESERVING, WITHOUT_QUEUE
from wms.ids import CeId, InstanceId, JobId, PilotId
from wms.job.job import TEXT_LIMIT
from wms.site import ComputingElement

log = structlog.get_logger()

SOURCE = "pilot_submitter"
AT_ONCE = 100
"""The most placements that one round carries out. The rest follows in the next round at once."""
TAKEN_SECONDS = 60.0
"""How long one instance has to store a pilot for a placement that it took, in seconds. After that another instance may take it."""


class OutgoingPilot(NamedTuple):
    """A placement that is being carried out: its pilot, the order to send it, and the endpoint that it goes through."""

    placed: Placement
    pilot: NewPilot
    order: PilotRequest
    endpoint: CeEndpoint


class Placing:
    """Sends pilots for placements (jobs that the broker assigned to an element). Any number of instances may run."""

    def __init__(
        self,
        db: Database,
        endpoints: CeEndpoints,
        maker: PilotFactory,
        following: PilotTracking,
        instance_id: InstanceId,
        *,
        calls: ElementCalls | None = None,
    ) -> None:
        """Build the sender; `calls` are how it calls elements. None: each round waits for the slowest element."""
        self._db = db
        self._endpoints = endpoints
        self._maker = maker
        self._following = following
        self._instance_id = instance_id
        self._calls = calls or ElementCalls()
        self._mark = ""

    async def send(self) -> bool:
        """Store and send pilots for up to `AT_ONCE` ordered placements, and fail those that cannot be sent.

        Elements to which pilots are still being sent get none. Return whether there may be more placements.
        """
        with self._following.sending() as names:
            async with self._db.transaction() as tx:
                elements = {each.ce_id: each for each in await ad.fresh(tx)}
                taken = await placement.take(
                    tx,
                    self._instance_id,
                    TAKEN_SECONDS,
                    AT_ONCE,
                    keeping=RESERVING,
                    most=_bounds(elements.values()),
                    busy=self._calls.busy(),
                )
                pilots, failures = await self._stored(tx, taken, elements) if taken else ([], [])
                # Pilots that are stored and not yet sent must not be taken as dead.
                names.update(each.pilot.pilot_id for each in pilots)
            await self._fail(failures)
            # A job that is sent directly goes once its lease is held (`direct_jobs`).
            pilots = [each for each in pilots if each.placed.dispatch == "pilot"]
            if pilots:
                faultpoint.reach("placing.after_store")
            await self._calls.run(
                {endpoint: self._send(endpoint, some) for endpoint, some in _by_endpoint(pilots).items()}
            )
        return len(taken) == AT_ONCE

    async def _fail(self, failures: Sequence[PlacementFailure]) -> None:
        """Fail placements in a transaction of their own, which locks jobs first as all others do."""
        if failures:
            async with self._db.transaction() as tx:
                await placement.fail(tx, failures, SOURCE)

    async def _stored(
        self, tx: Transaction, taken: Sequence[Placement], elements: Mapping[CeId, ComputingElement]
    ) -> tuple[list[OutgoingPilot], list[PlacementFailure]]:
        """Store a pilot for each taken placement whose element accepts one now. `elements` are the advertised ones by id.

        Return the stored pilots, and the failures of the other placements.
        """
        self._mark = self._mark or await pilot.mark(tx)
        work = await placement.work(tx, [each.job_id for each in taken])
        judged = [self._judged(each, elements.get(CeId(each.site, each.ce)), work) for each in taken]
        found = [each for each in judged if isinstance(each, OutgoingPilot)]
        kept = {each.pilot_id for each in await let_come(tx, [each.pilot for each in found])}
        failures = [each for each in judged if isinstance(each, PlacementFailure)] + [
            failure(each.placed, PlacementFault.REFUSED, "its ad lets no more pilots come")
            for each in found
            if each.pilot.pilot_id not in kept
        ]
        found = [each for each in found if each.pilot.pilot_id in kept]
        assigned = await placement.assign(
            tx, {(each.placed.job_id, each.placed.attempt): each.pilot.pilot_id for each in found}
        )
        found = [each for each in found if (each.placed.job_id, each.placed.attempt) in assigned]
        await self._maker.store(tx, [each.pilot for each in found])
        return found, failures

    def _judged(
        self, placed: Placement, element: ComputingElement | None, work: Mapping[JobId, PlacedWork]
    ) -> OutgoingPilot | PlacementFailure:
        """Return the pilot of a placement (pilot, order and endpoint), or its failure if none can be made.

        `element` is None if it is not advertised. `work` has the placed jobs by id.
        """
        endpoint = self._endpoints.to(placed.site, placed.ce, element.dispatcher) if element else None
        if element is None or endpoint is None or placed.job_id not in work:
            return failure(placed, PlacementFault.NO_ELEMENT, "it is not advertised, or no way leads to it")
        if placed.dispatch == "direct":
            required = work[placed.job_id].requirements
            if not trusts(endpoint.terms.direct_trusted, required):
                return failure(placed, PlacementFault.NOT_TRUSTED, distrust_words(required))
            if fault := self._direct_fault(work[placed.job_id], endpoint):
                return failure(placed, PlacementFault.NO_ELEMENT, fault)
        if not endpoint.open:
            return failure(placed, PlacementFault.UNREACHABLE, endpoint.why_shut)
        return self._outgoing(placed, work[placed.job_id], element, endpoint)

    def _direct_fault(self, work: PlacedWork, endpoint: CeEndpoint) -> str:
        return direct_fault(work.description, endpoint.dispatcher, self._maker.transfers(endpoint).access)

    def _outgoing(
        self, placed: Placement, work: PlacedWork, element: ComputingElement, endpoint: CeEndpoint
    ) -> OutgoingPilot:
        lifetime = self._maker.lifetime_seconds(endpoint)
        new = bound_pilot(pilot.new_id(self._mark), placed, work, element, lifetime)
        if placed.dispatch == "pilot":
            new = replace(new, link=self._maker.link(endpoint))
        request = request_of(placed, work, element, endpoint)
        purpose, window = purpose_of(work.requirements), window_of(work)
        hosts = placed.predicted.get("hosts", ())
        order = self._maker.order(new, element, endpoint, request, purpose, window=window, first_hosts=hosts)
        return OutgoingPilot(placed, new, order, endpoint)

    async def _send(self, endpoint: CeEndpoint, pilots: Sequence[OutgoingPilot]) -> None:
        with self._following.sending() as names:
            names.update(each.pilot.pilot_id for each in pilots)
            await self._send_all(endpoint, pilots)

    async def _send_all(self, endpoint: CeEndpoint, pilots: Sequence[OutgoingPilot]) -> None:
        sightings = await endpoint.ask(endpoint.dispatcher.send([each.order for each in pilots]))
        faultpoint.reach("placing.after_send")
        if sightings is None:
            return  # some may have arrived, and tracking will find them
        endpoint.reached()
        await self._following.note(sightings)
        await self._note({each.pilot_id: each for each in sightings}, pilots)

    async def _note(
        self, sightings: Mapping[PilotId, PilotSighting], pilots: Iterable[OutgoingPilot]
    ) -> None:
        """Store which pilots' placements were sent, and fail those that the element refused. `sightings` are its answers by pilot."""
        told = [(each, sightings.get(each.pilot.pilot_id)) for each in pilots]
        sent = [
            PlacementMark(job_id=each.placed.job_id, attempt=each.placed.attempt)
            for each, seen in told
            if seen is not None and not seen.ended
        ]
        refused = [
            failure(each.placed, PlacementFault.REFUSED, seen.reason)
            for each, seen in told
            if seen is not None and seen.ended
        ]
        async with self._db.transaction() as tx:
            await placement.mark(tx, PlacementEvent.SEND, PlacementState.SENT, sent)
        await self._fail(refused)
        log.info("placements sent", sent=len(sent), refused=[each.text for each in refused])


def failure(placed: Placement, code: PlacementFault, text: str) -> PlacementFailure:
    """Return the failure of a placement, to be stored; `text` explains it to the job's user."""
    return PlacementFailure(
        job_id=placed.job_id,
        attempt=placed.attempt,
        site=placed.site,
        ce=placed.ce,
        code=code,
        text=text[:TEXT_LIMIT],
    )


def _bounds(elements: Iterable[ComputingElement]) -> dict[CeId, int]:
    """Return the most bound pilots of each element that has no queue, and so starts every pilot at once.

    The number is the element's limit on pilots.
    """
    return {each.ce_id: each.pilot_limit for each in elements if each.dispatcher in WITHOUT_QUEUE}


def _by_endpoint(pilots: Iterable[OutgoingPilot]) -> dict[CeEndpoint, list[OutgoingPilot]]:
    found: dict[CeEndpoint, list[OutgoingPilot]] = {}
    for each in pilots:
        found.setdefault(each.endpoint, []).append(each)
    return found
