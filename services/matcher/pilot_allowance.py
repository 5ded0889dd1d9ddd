"""How many more jobs each asking pilot may be offered: by its row, its slots, its open offers and its leases.

A token alone is not enough to take jobs: it may be a copy, or its pilot may have ended. A pilot may have been offered so many jobs
that it has not accepted: its slots, a few more, and more for jobs that it has done, since pilots of short jobs fetch ahead. Of those
that it has accepted it may have some for each slot, so that none takes jobs from others and never begins them. All is
kept in memory: only a pilot that is new here, or at its bound, is looked up while it waits.
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
"""Jobs that may be offered ahead for each that the pilot has done."""
LEASES_PER_SLOT = 9
"""Jobs that a pilot may have for each of its slots: one that runs, and those that an agent fetches ahead at most."""
LOOK_AGAIN_SECONDS = 0.5
"""A pilot that was given nothing since is looked up so often at most."""


class _Known(msgspec.Struct):
    standing: PilotAllowance | None
    """None: there is no such pilot."""
    room: int
    """Jobs that it may be offered now; below 0 where others gave it jobs meanwhile."""
    looked_at: float
    given: int = 0
    """Jobs offered since then."""
    counted: bool = True
    """Whether its offers and leases were counted; of one that this matcher has not given any, they were not."""


class AskingPilots:
    """The pilots that ask this matcher; `extra` is how many jobs one may be offered beyond its slots before it has done any."""

    def __init__(self, db: Database, extra: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._extra = extra
        self._clock = clock
        self._known: dict[PilotId, _Known] = {}
        self.refused = 0
        """Requests of pilots that are not there, or not any more."""

    async def refresh(self) -> None:
        """Look at all pilots that live: the others are forgotten."""
        async with self._db.transaction() as tx:
            alive = await pilot.standings(tx, None)
        for pilot_id in self._known.keys() - alive.keys():
            del self._known[pilot_id]
        for pilot_id, standing in alive.items():
            known = self._known.get(pilot_id)
            if known is None:
                self._known[pilot_id] = _Known(standing, self._bound(standing), self._clock(), counted=False)
            else:
                # What it was offered meanwhile is counted only when it is at its bound.
                known.standing = _as_counted(standing, known)
                known.room = self._bound(known.standing) - known.given

    async def look(self, tx: Transaction, wanted: Iterable[tuple[PilotId, int]]) -> None:
        """Look up pilots that are unknown, or at their bounds with so many slots more."""
        now = self._clock()
        doubtful = [pilot_id for pilot_id, slots in wanted if self._is_doubtful(pilot_id, slots, now)]
        if doubtful:
            found = await pilot.standings(tx, doubtful)
            for each in doubtful:
                standing = found.get(each)
                self._known[each] = _Known(standing, self._bound(standing), now)

    def refusal(self, pilot_id: PilotId) -> str:
        """Return why the pilot gets nothing at all, or an empty text."""
        known = self._known.get(pilot_id)
        if known is None or known.standing is None:
            self.refused += 1
            return "there is no such pilot"
        if known.standing.ended:
            self.refused += 1
            return "the pilot has ended"
        return ""

    def room(self, pilot_id: PilotId) -> int:
        """Return how many more jobs it may be offered now: none if it is refused."""
        known = self._known.get(pilot_id)
        return max(0, known.room) if known is not None else 0

    def offered(self, jobs: Mapping[PilotId, int]) -> None:
        """Note how many jobs each was offered."""
        for pilot_id, count in jobs.items():
            if (known := self._known.get(pilot_id)) is not None:
                known.given += count
                known.room -= count

    def take_back(self, jobs: Mapping[PilotId, int]) -> None:
        """Note that these offers came to nothing."""
        self.offered({pilot_id: -count for pilot_id, count in jobs.items()})

    def _bound(self, standing: PilotAllowance | None) -> int:
        """Return how many jobs more than it was offered or has a pilot may be offered."""
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
        # Where nothing was given since, there can hardly be news: whoever asks in vain costs little.
        return known.room < slots and (known.given > 0 or now - known.looked_at >= LOOK_AGAIN_SECONDS)


def _as_counted(standing: PilotAllowance, known: _Known) -> PilotAllowance:
    """Return what the pilot's row tells, with the offers and leases that were counted before."""
    before = known.standing
    offered, leases = (before.offered, before.leases) if before is not None else (0, 0)
    return msgspec.structs.replace(standing, offered=offered, leases=leases)
