"""Allowances of pilots: how many more jobs each may be offered, by its state, slots, open offers and leases.

A valid token is not enough to get jobs: it may be a copy, or its pilot may have ended. Pilots of short jobs fetch ahead. So a pilot may have as many
unaccepted offers as its slots, a few more, and more for each job that it has done. Its leases are limited for each slot, so that it cannot hoard jobs
without starting them. All allowances are kept in memory. A request waits for the database only if its pilot is unknown, or has used up its allowance.
"""

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from wms.db import pilot
from wms.db.database import Database, Transaction
from wms.db.pilot import PilotAllowance
from wms.ids import PilotId
from wms.messages.match_requests import SLOTS_LIMIT

AHEAD_PER_JOB = 4
"""How many more unaccepted offers a pilot may have for each job that it has done."""
LEASES_PER_SLOT = 9
"""The most jobs for which a pilot may hold leases, for each of its slots. One runs, and the agent fetches the others ahead."""
LOOK_AGAIN_SECONDS = 0.5
"""Seconds after which a pilot is read from the database again, if it was offered nothing since it was last read."""


class _Known(msgspec.Struct):
    standing: PilotAllowance | None
    """The allowance of the pilot as read from the database; None: the pilot does not exist."""
    room: int
    """The number of jobs that the pilot may be offered now; negative if other matchers offered it jobs meanwhile."""
    looked_at: float
    given: int = 0
    """The number of jobs offered to the pilot since it was read."""
    counted: bool = True
    """Whether the pilot's offers and leases were counted. They are not for a pilot that this matcher has given no jobs."""


class AskingPilots:
    """The allowances of the pilots that ask this matcher for jobs.

    `extra` is how many offers a pilot may have beyond its slots before it has done a job. `clock` returns monotonic seconds.
    """

    def __init__(self, db: Database, extra: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._extra = extra
        self._clock = clock
        self._known: dict[PilotId, _Known] = {}
        self.refused = 0
        """How many requests came from pilots that do not exist or have ended."""

    async def refresh(self) -> None:
        """Read all live pilots from the database, and drop the others from memory."""
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
        """Read from the database those pilots in `wanted` that are unknown or may get fewer jobs than they ask for.

        `wanted` has the number of jobs that each pilot asks for. Later calls of `room` and `refusal` use what was read.
        """
        now = self._clock()
        doubtful = [pilot_id for pilot_id, slots in wanted if self._is_doubtful(pilot_id, slots, now)]
        if doubtful:
            found = await pilot.standings(tx, doubtful)
            for each in doubtful:
                standing = found.get(each)
                self._known[each] = _Known(standing, self._bound(standing), now)

    def refusal(self, pilot_id: PilotId) -> str:
        """Return why a pilot must be given no jobs: it does not exist or has ended; empty if it may be given some.

        A refusal is counted.
        """
        known = self._known.get(pilot_id)
        if known is None or known.standing is None:
            self.refused += 1
            return "there is no such pilot"
        if known.standing.ended:
            self.refused += 1
            return "the pilot has ended"
        return ""

    def room(self, pilot_id: PilotId) -> int:
        """Return how many more jobs a pilot may be offered now; 0 for one that is refused or was never looked up."""
        known = self._known.get(pilot_id)
        return max(0, known.room) if known is not None else 0

    def offered(self, jobs: Mapping[PilotId, int]) -> None:
        """Reduce the allowances of pilots by the number of jobs that each was offered."""
        for pilot_id, count in jobs.items():
            if (known := self._known.get(pilot_id)) is not None:
                known.given += count
                known.room -= count

    def take_back(self, jobs: Mapping[PilotId, int]) -> None:
        """Restore the allowances of pilots after the transaction with their offers failed."""
        self.offered({pilot_id: -count for pilot_id, count in jobs.items()})

    def _bound(self, standing: PilotAllowance | None) -> int:
        """Return how many more jobs a pilot may be offered, as its slots, finished jobs, open offers and leases allow.

        The number is negative if it has too many offers or leases already. It is 0 for a pilot that has ended or does not exist
        (`standing` None).
        """
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
    """Return the pilot's present allowance (`standing`), but with the numbers of offers and leases from its earlier reading (`known`)."""
    before = known.standing
    offered, leases = (before.offered, before.leases) if before is not None else (0, 0)
    return msgspec.structs.replace(standing, offered=offered, leases=leases)
