"""Requests of idle pilots: each found no job, and stands until its pilot asks again, so that jobs that come are offered at once.

A request stands in memory alone. If the matcher ends, its pilot asks again by itself and nothing is lost.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from services.matcher.verified_request import VerifiedRequest
from wms.db.database import Database, Transaction
from wms.ids import PilotId, RequestId

REQUESTS_LIMIT = 20_000
"""Requests that stand at once; the oldest give way to newer ones."""
AT_ONCE = 512
"""Requests that are tried in one transaction."""

Offering: TypeAlias = Callable[[Transaction, Sequence[VerifiedRequest]], Awaitable[set[RequestId]]]
"""Offers jobs for requests, and returns the ids of those that got some."""


class _Standing(msgspec.Struct, frozen=True, gc=False):
    request: VerifiedRequest
    expires_at: float


class StandingRequests:
    """The requests that stand: at most one of each pilot, its last. An offer ends it, as does the pilot's next request.

    Each stands for at most `seconds` by `clock`: then its pilot has asked again, or is gone.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._standing: dict[PilotId, _Standing] = {}
        self._tried: set[PilotId] = set()
        """Pilots whose requests are being tried and that have not asked anew since."""

    def __len__(self) -> int:
        return len(self._standing)

    def keep(self, requests: Iterable[VerifiedRequest]) -> None:
        """Let requests stand from now on."""
        expires_at = self._clock() + self._seconds
        for request in requests:
            self._standing[request.pilot_id] = _Standing(request, expires_at)
        while len(self._standing) > REQUESTS_LIMIT:
            del self._standing[next(iter(self._standing))]

    def forget(self, pilot_ids: Iterable[PilotId]) -> None:
        """Let no request of these pilots stand, as they have asked anew."""
        for pilot_id in pilot_ids:
            self._standing.pop(pilot_id, None)
            self._tried.discard(pilot_id)

    async def offer(self, db: Database, offering: Offering) -> None:
        """Try the requests that stand longest; those that get nothing stand on. One call at a time."""
        tried = self._take()
        if not tried:
            return
        served: set[RequestId] = set()
        try:
            async with db.transaction() as tx:
                offered = await offering(tx, [each.request for each in tried])
            served = offered  # only what was committed
        finally:
            self._put_back(each for each in tried if each.request.request_id not in served)

    def _take(self) -> list[_Standing]:
        now = self._clock()
        taken = [self._standing.pop(pilot_id) for pilot_id in list(self._standing)[:AT_ONCE]]
        found = [each for each in taken if each.expires_at > now]
        self._tried = {each.request.pilot_id for each in found}
        return found

    def _put_back(self, standing: Iterable[_Standing]) -> None:
        for each in standing:
            if each.request.pilot_id in self._tried:
                self._standing[each.request.pilot_id] = each
        self._tried.clear()
