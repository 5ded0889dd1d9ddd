"""Follows pilots to their end: reads their states at computing elements, fetches their outputs, and removes them there."""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Sequence

import structlog
from msgspec.structs import replace

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints
from services.pilot_submitter.element_calls import ElementCalls
from wms.db import pilot
from wms.db.database import Database
from wms.db.pilot import EndedPilot, Followed, LivePilot
from wms.dispatch.port import PilotSighting
from wms.ids import PilotId
from wms.job.reasons import Code

log = structlog.get_logger()

ARRIVING_SECONDS = 60.0
"""Seconds after a pilot was stored in which its element may not know it yet. Until then such a report is ignored."""
SETTLED_SECONDS = 20.0
"""Seconds after a pilot's end at which its element should have the pilot's output. It is fetched from then on."""
LINGERING_SECONDS = 120.0
"""Seconds after a pilot's end by which its element should list it as ended. After that a process of the pilot counts as stuck.

The pilot's output so far is fetched then, and the pilot is cancelled.
"""
GIVEN_UP_SECONDS = 1_200.0
"""Seconds of silence after which a pilot counts as lost, though its element lists it as running.

A job agent that gets no answers ends sooner than that.
"""
ASKED_FOR_SECONDS = 3_600.0
"""Seconds after a pilot's end for which the service tries to fetch the pilot's output. After that it is given up."""
OUTPUTS_AT_ONCE = 100


class PilotTracking:
    """Follows the pilots of all endpoints: reads their states, stores changes, and fetches their outputs."""

    def __init__(
        self,
        db: Database,
        endpoints: CeEndpoints,
        *,
        settled_seconds: float = SETTLED_SECONDS,
        silent_seconds: float = 60.0,
        given_up_seconds: float = GIVEN_UP_SECONDS,
        calls: ElementCalls | None = None,
    ) -> None:
        """Build the tracking; `calls` are how it reads states at elements. None: each round waits for the slowest element."""
        self._db = db
        self._endpoints = endpoints
        self._settled_seconds = settled_seconds
        self.silent_seconds = silent_seconds
        """Seconds without a message after which an element's report that a pilot is lost is believed.

        The planner counts no free slots of a pilot with jobs that is silent for so long.
        """
        self._given_up_seconds = given_up_seconds
        self._calls = calls or ElementCalls()
        self._sending: list[set[PilotId]] = []

    @contextlib.contextmanager
    def sending(self) -> Iterator[set[PilotId]]:
        """Return a context with an empty set, to which the caller adds the ids of pilots that it is sending.

        `follow` does not read the states of these pilots until the context ends.
        """
        names: set[PilotId] = set()
        self._sending.append(names)
        try:
            yield names
        finally:
            # By identity: another sender's set may be equal while both are empty.
            self._sending = [each for each in self._sending if each is not names]

    async def follow(self) -> None:
        """Read the states of pilots at every endpoint whose interval between readings is over, and store changes.

        An endpoint that still answers an earlier reading is left out.
        """
        async with self._db.transaction() as tx:
            alive = await pilot.alive(tx)
        arrived = [each for each in alive if not any(each.pilot_id in names for names in self._sending)]
        due = {
            endpoint: pilots
            for endpoint, pilots in self._endpoints.behind(arrived).items()
            if endpoint.due and not self._calls.is_busy(endpoint)
        }
        await self._calls.run({endpoint: self._follow(endpoint, pilots) for endpoint, pilots in due.items()})

    async def _follow(self, endpoint: CeEndpoint, pilots: Sequence[LivePilot]) -> None:
        sightings = await endpoint.ask(endpoint.dispatcher.follow([each.pilot_id for each in pilots]))
        if sightings is None:
            return
        endpoint.followed()
        known = {each.pilot_id: each for each in pilots}
        sightings = [self._given_up(each, known[each.pilot_id]) for each in sightings]
        news = [each for each in sightings if _is_news(each, known[each.pilot_id], self.silent_seconds)]
        _judge(endpoint, pilots, news)
        await self.note(news)

    def _given_up(self, sighting: PilotSighting, known: LivePilot) -> PilotSighting:
        """Return the element's report on a pilot (`sighting`), or a report that it is lost.

        A pilot is lost if it is listed as running, and has been silent for `given_up_seconds`. `known` is the stored pilot.
        """
        if sighting.state != "Running" or known.unheard is None or known.unheard < self._given_up_seconds:
            return sighting
        reason = f"listed as running, and not heard of for {known.unheard:,.0f} s"
        return replace(sighting, state="Failed", lost=Code.NODE_LOST, reason=reason)

    async def note(self, sightings: Iterable[PilotSighting]) -> None:
        """Store pilot states that dispatchers reported, in a transaction of its own.

        Leases of pilots that ended end within seconds, so that their jobs wait again. Pilots that were lost keep theirs, as
        they may still work.
        """
        news = list(sightings)
        if not news:
            return
        followed = [
            Followed(
                pilot_id=each.pilot_id,
                state=each.state,
                reference=each.reference,
                reason=each.reason,
                cause=each.cause,
            )
            for each in news
        ]
        async with self._db.transaction() as tx:
            await pilot.update(tx, followed)
            await pilot.hurry_leases(tx, [each.pilot_id for each in news if each.ended and not each.lost])
        for each in news:
            log.info("pilot changed", pilot=each.pilot_id, state=each.state, reason=each.reason)

    async def fetch_outputs(self) -> bool:
        """Fetch and store the outputs of up to `OUTPUTS_AT_ONCE` ended pilots, and remove these pilots from their elements.

        Return whether there may be more.
        """
        async with self._db.transaction() as tx:
            ended = await pilot.unfetched(
                tx, within=ASKED_FOR_SECONDS, since=self._settled_seconds, limit=OUTPUTS_AT_ONCE
            )
        by_endpoint = {
            endpoint: some for endpoint, some in self._endpoints.behind(ended).items() if endpoint.reachable
        }
        fetched = await asyncio.gather(
            *(endpoint.ask(self._fetch(endpoint, pilots)) for endpoint, pilots in by_endpoint.items())
        )
        return len(ended) == OUTPUTS_AT_ONCE and any(fetched)

    async def _fetch(self, endpoint: CeEndpoint, pilots: Sequence[EndedPilot]) -> bool:
        names = await self._gone(endpoint, pilots)
        if not names:
            return False
        found = {each.pilot_id: each.text for each in await endpoint.dispatcher.outputs(names)}
        async with self._db.transaction() as tx:
            await pilot.keep_outputs(tx, {name: found.get(name, "") for name in names})
        await endpoint.dispatcher.forget(names)
        return True

    async def _gone(self, endpoint: CeEndpoint, pilots: Sequence[EndedPilot]) -> list[PilotId]:
        """Return those of these ended pilots whose outputs are to be fetched now.

        These are the ones that their element no longer lists as alive, that were lost, or that ended over `LINGERING_SECONDS`
        ago. `StrayPilots` cancels those that are still listed.
        """
        sightings = await endpoint.dispatcher.follow([each.pilot_id for each in pilots])
        there = {each.pilot_id for each in sightings if not each.ended}
        return [
            each.pilot_id
            for each in pilots
            if each.pilot_id not in there or each.lost or each.age >= LINGERING_SECONDS
        ]


def _is_news(sighting: PilotSighting, known: LivePilot, silent_seconds: float) -> bool:
    if sighting.lost and known.silent is not None and known.silent < silent_seconds:
        return False  # its own messages are more reliable
    if known.state == "Submitting" and sighting.state == "Aborted" and known.age < ARRIVING_SECONDS:
        return False
    if sighting.state == "Running" and known.state in ("Running", "Draining", "Submitted"):
        return False
    return sighting.state != known.state


def _judge(endpoint: CeEndpoint, pilots: Sequence[LivePilot], news: Sequence[PilotSighting]) -> None:
    """Record at an endpoint whether its pilots work: a success if any of them has reported, else a failure if one died.

    `news` are the element's reports of changed states. A pilot that never arrived there is no failure of the endpoint.
    """
    seen = {each.pilot_id for each in pilots if each.seen_at is not None}
    # What we cancelled is no fault of the element.
    arrived = {each.pilot_id for each in pilots if each.state != "Submitting" and not each.cancelled}
    if seen:
        endpoint.served()
    elif died := [each for each in news if each.state in ("Failed", "Aborted") and each.pilot_id in arrived]:
        endpoint.lost(died[0].reason)
