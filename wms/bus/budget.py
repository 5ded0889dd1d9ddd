"""Budgets of owners as token buckets, in seconds of processing or in bytes."""

from typing import NamedTuple

from wms.bounded_cache import BoundedCache

OWNERS = 10_000
"""The number of owners that are remembered. Owners that spent nothing for longest are dropped first; their budgets are nearly full."""


class _Bucket(NamedTuple):
    left: float
    at: float


class Budget:
    """Token buckets by owner: each holds at most `burst` and regains `rate` a second. `now` is in monotonic seconds."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._buckets = BoundedCache[str, _Bucket](OWNERS)

    def left(self, owner: str, now: float) -> float:
        """Return the amount that the owner may spend now; it is negative after spending in advance."""
        bucket = self._buckets.get(owner)
        if bucket is None:
            return self.burst
        return min(self.burst, bucket.left + (now - bucket.at) * self.rate)

    def spend(self, owner: str, amount: float, now: float) -> None:
        """Subtract an amount from the owner's budget, even if less is left. The debt is at most `burst`."""
        self._buckets[owner] = _Bucket(max(self.left(owner, now) - amount, -self.burst), now)

    def seconds_until(self, owner: str, amount: float, now: float) -> float:
        """Return the seconds until the owner may spend `amount`; 0 for at once. An amount above the burst needs a full budget."""
        return max(0.0, (min(amount, self.burst) - self.left(owner, now)) / self.rate)
