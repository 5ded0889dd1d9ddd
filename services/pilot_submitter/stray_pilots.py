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
        self, db: Database, doors: CeEndpoints, *, lingering_seconds: float = LINGERING_SECONDS
    ) -> None:
        self._db = db
        self._doors = doors
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
        doors = [door for door in self._doors.all() if self._is_due(door)]
        await asyncio.gather(*map(self._clear, doors))

    def _is_due(self, door: CeEndpoint) -> bool:
        return door.reachable and self._doors.clock() >= self._look_at.get(door, 0.0)

    async def _clear(self, door: CeEndpoint) -> None:
        listed = await door.ask(door.dispatcher.alive())
        if listed is None:
            return
        left = self._note(door, await self._over(door, listed))
        if not left:
            self._look_at[door] = self._doors.clock() + LOOK_SECONDS
        due = [name for name, each in left.items() if each.patience.over]
        if not due:
            return
        times = max(left[name].count() for name in due)
        log.warning(
            "pilots are listed that should be gone, cancelled", door=door.place, pilots=due, times=times
        )
        await door.ask(door.dispatcher.cancel(due))

    async def _over(self, door: CeEndpoint, names: Collection[PilotId]) -> list[ListedStray]:
        """Return the stray pilots among those that the element at `door` lists (`names`).

        The database is read after the list was made, so that no pilot just sent looks unknown.
        """
        if not names:
            return []
        async with self._db.transaction() as tx:
            found = await pilot.over(tx, sorted(names))
        return [each for each in found if self._is_ours(each, door)]

    def _is_ours(self, each: ListedStray, door: CeEndpoint) -> bool:
        if each.age is None:
            return each.pilot_id.startswith(pilot.prefix(self._mark))
        return CeId(each.site, each.ce) == door.place

    def _note(self, door: CeEndpoint, over: Sequence[ListedStray]) -> "dict[PilotId, _Left]":
        """Remember the stray pilots `over` of an endpoint, and forget those that are no longer listed.

        Return, by id, those that have been stray for `lingering_seconds`.
        """
        known, now = self._left.get(door, {}), self._doors.clock()
        found = {each.pilot_id: known.get(each.pilot_id) or _Left(self._doors, now) for each in over}
        self._left[door] = found
        return {
            each.pilot_id: found[each.pilot_id]
            for each in over
            if (now - found[each.pilot_id].since if each.age is None else each.age) >= self._lingering_seconds
        }


class _Left:
    """The memory of one stray pilot: when it was first seen, how often it was cancelled, and when it may be cancelled again.

    `since` is in seconds of the endpoints' monotonic clock.
    """

    def __init__(self, doors: CeEndpoints, since: float) -> None:
        self.since = since
        self.patience = CircuitBreaker(doors.clock, CANCEL_PAUSE_SECONDS)
        self._times = 0

    def count(self) -> int:
        """Count one cancellation and begin the pause until the next; return the number of cancellations."""
        self._times += 1
        self.patience.failed()
        return self._times
