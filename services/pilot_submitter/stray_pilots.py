"""Stray pilots: an element lists them as alive though the database says that they are over. They are cancelled until they are gone.

There are three kinds. A pilot has ended and is still listed; it was lost and its leases are over; or it has this system's mark
and is unknown here. A batch system that restarts may forget a cancellation, so it is repeated, in growing pauses, as long as the
pilot is listed.
"""

import asyncio
from collections.abc import Collection, Sequence

import structlog

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, CircuitBreaker
from services.pilot_submitter.pilot_tracking import LINGERING_SECONDS
from wms.db import pilot
from wms.db.database import Database
from wms.db.pilot import ListedStray
from wms.ids import CeId, PilotId

log = structlog.get_logger()

LOOK_SECONDS = 30.0
"""Seconds until an element at which there were no stray pilots is asked for its list of pilots again."""
CANCEL_PAUSE_SECONDS = 30.0
"""Seconds after the first cancellation of a stray pilot until the next. Later pauses double, up to `LONGEST_PAUSE` of `CircuitBreaker`."""


class StrayPilots:
    """Finds stray pilots in the elements' lists of pilots, and cancels them.

    A pilot is not cancelled before it has been stray for `lingering_seconds`.
    """

    def __init__(
        self, db: Database, endpoints: CeEndpoints, *, lingering_seconds: float = LINGERING_SECONDS
    ) -> None:
        self._db = db
        self._endpoints = endpoints
        self._lingering_seconds = lingering_seconds
        self._mark = ""
        self._look_at: dict[CeEndpoint, float] = {}
        self._left: dict[CeEndpoint, dict[PilotId, _Left]] = {}

    async def clear(self) -> None:
        """Get the list of living pilots of every element that is due, and cancel the stray ones.

        An element is due if it is reachable, and its last list had stray pilots or is older than `LOOK_SECONDS`.
        """
        if not self._mark:
            async with self._db.transaction() as tx:
                self._mark = await pilot.mark(tx)
        endpoints = [endpoint for endpoint in self._endpoints.all() if self._is_due(endpoint)]
        await asyncio.gather(*map(self._clear, endpoints))

    def _is_due(self, endpoint: CeEndpoint) -> bool:
        return endpoint.reachable and self._endpoints.clock() >= self._look_at.get(endpoint, 0.0)

    async def _clear(self, endpoint: CeEndpoint) -> None:
        listed = await endpoint.ask(endpoint.dispatcher.alive())
        if listed is None:
            return
        left = self._note(endpoint, await self._over(endpoint, listed))
        if not left:
            self._look_at[endpoint] = self._endpoints.clock() + LOOK_SECONDS
        due = [name for name, each in left.items() if each.patience.over]
        if not due:
            return
        times = max(left[name].count() for name in due)
        log.warning(
            "pilots are listed that should be gone, cancelled",
            endpoint=endpoint.place,
            pilots=due,
            times=times,
        )
        await endpoint.ask(endpoint.dispatcher.cancel(due))

    async def _over(self, endpoint: CeEndpoint, names: Collection[PilotId]) -> list[ListedStray]:
        """Return the stray pilots among those that the element at `endpoint` lists (`names`).

        The database is read after the list was made, so that no pilot just sent looks unknown.
        """
        if not names:
            return []
        async with self._db.transaction() as tx:
            found = await pilot.over(tx, sorted(names))
        return [each for each in found if self._is_ours(each, endpoint)]

    def _is_ours(self, each: ListedStray, endpoint: CeEndpoint) -> bool:
        if each.age is None:
            return each.pilot_id.startswith(pilot.prefix(self._mark))
        return CeId(each.site, each.ce) == endpoint.place

    def _note(self, endpoint: CeEndpoint, over: Sequence[ListedStray]) -> "dict[PilotId, _Left]":
        """Remember the stray pilots `over` of an endpoint, and forget those that are no longer listed.

        Return, by id, those that have been stray for `lingering_seconds`.
        """
        known, now = self._left.get(endpoint, {}), self._endpoints.clock()
        found = {each.pilot_id: known.get(each.pilot_id) or _Left(self._endpoints, now) for each in over}
        self._left[endpoint] = found
        return {
            each.pilot_id: found[each.pilot_id]
            for each in over
            if (now - found[each.pilot_id].since if each.age is None else each.age) >= self._lingering_seconds
        }


class _Left:
    """The memory of one stray pilot: when it was first seen, how often it was cancelled, and when it may be cancelled again.

    `since` is in seconds of the endpoints' monotonic clock.
    """

    def __init__(self, endpoints: CeEndpoints, since: float) -> None:
        self.since = since
        self.patience = CircuitBreaker(endpoints.clock, CANCEL_PAUSE_SECONDS)
        self._times = 0

    def count(self) -> int:
        """Count one cancellation and begin the pause until the next; return the number of cancellations."""
        self._times += 1
        self.patience.failed()
        return self._times
