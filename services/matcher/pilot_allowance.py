"""Allowances of pilots: how many more jobs each may be offered, by its row, slots, open offers and leases.

A token is not enough to get jobs: it may be a copy, or its pilot may have ended. A pilot may have as many
unaccepted offers as its slots, a few more, and more for jobs that it has done, since pilots of short jobs fetch
ahead. Its leases are bounded for each slot, so that it cannot hoard jobs without starting them. All is kept in
memory: only an unknown pilot, or one at its bound, is looked up while it waits.
"""

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from wms.db import pilot
from wms.db.database import Database, Transaction
from wms.db.pilot import PilotAllowance
from wms.ids import PilotId
from wms.messages.requests import SLOTS_LIMIT

AHEAD_PER_JOB = 4
"""Jobs that may be offered ahead for each job that the pilot has done."""
LEASES_PER_SLOT = 9
"""The most leases of a pilot for each slot: one running, and the most that an agent fetches ahead."""
LOOK_AGAIN_SECONDS = 0.5
"""Seconds between two look-ups of a pilot that got nothing since."""


class _Known(msgspec.Struct):
    standing: PilotAllowance | None
    """None: the pilot does not exist."""
    room: int
    """Jobs that it may be offered now; negative if other matchers offered it jobs meanwhile."""
    looked_at: float
    given: int = 0
    """Jobs offered since it was looked up."""
    counted: bool = True
    """Whether its offers and leases were counted; not for a pilot that this matcher gave none."""


class AskingPilots:
    """The pilots that ask this matcher; `extra` is how many offers one may have beyond its slots before it has done a job."""

    def __init__(self, db: Database, extra: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._extra = extra
        self._clock = clock
        self._known: dict[PilotId, _Known] = {}
        self.refused = 0
        """Requests of pilots that do not exist or have ended."""

    async def refresh(self) -> None:
        """Read all live pilots, and forget the others."""
        async with self._db.transaction() as tx:
            alive = await pilot.standings(tx, None)
        for pilot_id in self._known.keys() - alive.keys():
            del self._known[pilot_id]
        for pilot_id, standing in alive.items():
            known = self._known.get(pilot_id)
            if known is None:
                self._known[pilot_id] = _Known(standing, self._bound(standing), self._clock(), counted=False)
            else:
                # Its offers are counted again only when it is at its bound.
                known.standing = _as_counted(standing, known)
                known.room = self._bound(known.standing) - known.given

    async def look(self, tx: Transaction, wanted: Iterable[tuple[PilotId, int]]) -> None:
        """Look up unknown pilots, and those at their bounds with so many slots more."""
        now = self._clock()
        doubtful = [pilot_id for pilot_id, slots in wanted if self._is_doubtful(pilot_id, slots, now)]
        if doubtful:
            found = await pilot.standings(tx, doubtful)
            for each in doubtful:
                standing = found.get(each)
                self._known[each] = _Known(standing, self._bound(standing), now)

    def refusal(self, pilot_id: PilotId) -> str:
        """Return why the pilot is refused, or an empty text."""
        known = self._known.get(pilot_id)
        if known is None or known.standing is None:
            self.refused += 1
            return "there is no such pilot"
        if known.standing.ended:
            self.refused += 1
            return "the pilot has ended"
        return ""

    def room(self, pilot_id: PilotId) -> int:
        """Return how many more jobs it may be offered now; 0 if it is refused."""
        known = self._known.get(pilot_id)
        return max(0, known.room) if known is not None else 0

    def offered(self, jobs: Mapping[PilotId, int]) -> None:
        """Count offers."""
        for pilot_id, count in jobs.items():
            if (known := self._known.get(pilot_id)) is not None:
                known.given += count
                known.room -= count

    def take_back(self, jobs: Mapping[PilotId, int]) -> None:
        """Take back offers whose transaction failed."""
        self.offered({pilot_id: -count for pilot_id, count in jobs.items()})

    def _bound(self, standing: PilotAllowance | None) -> int:
        """Return how many more jobs than it has, or is offered, a pilot may be offered."""
        if standing is None or standing.ended:
            return 0
        ahead = self._extra + min(AHEAD_PER_JOB * standing.done, SLOTS_LIMIT)
        offers = standing.slots + ahead - standing.offered
        leases = LEASES_PER_SLOT * standing.slots + ahead - standing.leases
        return min(offers, leases)

    def _is_doubtful(self, pilot_id: PilotId, slots: int, now: float) -> bool:
        known = self._known.get(pilot_id)
        if known is None or not known.counted:
            return True
        # A pilot that got nothing since can hardly have changed: asking in vain stays cheap.
        return known.room < slots and (known.given > 0 or now - known.looked_at >= LOOK_AGAIN_SECONDS)


def _as_counted(standing: PilotAllowance, known: _Known) -> PilotAllowance:
    """Return the allowance of the pilot's row with the offers and leases counted before."""
    before = known.standing
    offered, leases = (before.offered, before.leases) if before is not None else (0, 0)
    return msgspec.structs.replace(standing, offered=offered, leases=leases)
