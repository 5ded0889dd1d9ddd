"""Budgets of requests: how many one token, owner or address may make a second, and at once after a pause.

The rule is the generic cell rate algorithm: for each key one time is kept, at which its bucket would be full again.
"""

from collections.abc import Hashable

from wms.bounded_cache import BoundedCache

KEYS = 20_000
"""The greatest number of keys that are remembered. Those seen longest ago are forgotten first, and begin anew."""


class RequestBudget:
    """A budget for each key: `per_second` requests, and `burst` at once after a pause."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._cost = 1.0 / per_second
        self._room = burst / per_second
        self._full_at: BoundedCache[Hashable, float] = BoundedCache(KEYS)

    def spend(self, key: Hashable, now: float) -> float:
        """Spend one request of the key at `now` (in seconds), and return 0.

        If the budget is spent, return after how many seconds to ask again.
        """
        full_at = max(now, self._full_at.get(key, now)) + self._cost
        if (wait := full_at - now - self._room) > 0:
            return wait
        self._full_at[key] = full_at
        return 0.0
