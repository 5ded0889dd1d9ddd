"""Request rates: how many requests one token, owner, pilot or address may make per second, and at once after a pause.

The algorithm is GCRA (generic cell rate algorithm): for each key it stores only the time at which its burst is available in full again.
"""

from collections.abc import Hashable

from wms.bounded_cache import BoundedCache

KEYS = 20_000
"""The most keys that are remembered. When it is reached, the quarter unused for longest is forgotten; those keys have their full burst again."""


class RequestBudget:
    """Limits the requests of each key to a rate of `per_second`, and to `burst` at once after a pause."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._cost = 1.0 / per_second
        self._room = burst / per_second
        self._full_at: BoundedCache[Hashable, float] = BoundedCache(KEYS)

    def spend(self, key: Hashable, now: float) -> float:
        """Count one request of the key at `now` (in seconds), and return 0.0.

        If the rate is exceeded, count nothing, and return after how many seconds the next request is allowed.
        """
        full_at = max(now, self._full_at.get(key, now)) + self._cost
        if (wait := full_at - now - self._room) > 0:
            return wait
        self._full_at[key] = full_at
        return 0.0
