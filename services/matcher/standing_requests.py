"""Keeps match requests for which no job was found, so that new jobs are offered to idle pilots at once.

They are kept in memory only. If the matcher ends, pilots ask again by themselves and nothing is lost.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from services.matcher.verified_request import VerifiedRequest
from wms.db.database import Database, Transaction
from wms.ids import PilotId, RequestId

REQUESTS_LIMIT = 20_000
"""The most requests that are kept; beyond it the oldest are dropped."""
AT_ONCE = 512
"""The most requests that are tried in one transaction."""

Offering: TypeAlias = Callable[[Transaction, Sequence[VerifiedRequest]], Awaitable[set[RequestId]]]
"""A function that offers jobs for requests, and returns the ids of the requests that got some."""


class _Standing(msgspec.Struct, frozen=True, gc=False):
    request: VerifiedRequest
    expires_at: float


class StandingRequests:
    """The unanswered requests of idle pilots: of each pilot its last one. A request is dropped after an offer, or when its pilot asks again.

    Each is kept for at most `seconds`. By then its pilot has asked again, or is gone. `clock` returns monotonic seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._standing: dict[PilotId, _Standing] = {}
        self._tried: set[PilotId] = set()
        """The pilots whose requests are being tried now. A pilot that asks again meanwhile is removed."""

    def __len__(self) -> int:
        return len(self._standing)

    def keep(self, requests: Iterable[VerifiedRequest]) -> None:
        """Keep these requests, which got no job. Each replaces an earlier request of the same pilot."""
        expires_at = self._clock() + self._seconds
        for request in requests:
            self._standing[request.pilot_id] = _Standing(request, expires_at)
        while len(self._standing) > REQUESTS_LIMIT:
            del self._standing[next(iter(self._standing))]

    def forget(self, pilot_ids: Iterable[PilotId]) -> None:
        """Drop the requests of these pilots, as they have asked again."""
        for pilot_id in pilot_ids:
            self._standing.pop(pilot_id, None)
            self._tried.discard(pilot_id)

    async def offer(self, db: Database, offering: Offering) -> None:
        """Try to offer jobs for the oldest kept requests by `offering`, in a transaction of `db`. Those that get none are kept.

        It must not be called again before it returns.
        """
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
