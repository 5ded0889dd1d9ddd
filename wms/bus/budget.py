"""Budgets of owners: seconds of processing and bytes, each a bucket that fills at a rate."""

from typing import NamedTuple

from wms.bounded_cache import BoundedCache

OWNERS = 10_000
"""So many are remembered; of more, those that spent nothing for longest are as good as full."""


class _Bucket(NamedTuple):
    left: float
    at: float


class Budget:
    """What each owner may spend: `burst` at once, and `rate` a second for good. `now` is in monotonic seconds."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._buckets = BoundedCache[str, _Bucket](OWNERS)

    def left(self, owner: str, now: float) -> float:
        """Return what the owner may spend now; below zero, as much was spent in advance."""
        bucket = self._buckets.get(owner)
        if bucket is None:
            return self.burst
        return min(self.burst, bucket.left + (now - bucket.at) * self.rate)

    def spend(self, owner: str, amount: float, now: float) -> None:
        """Take it from the owner's budget, though there may be less."""
        self._buckets[owner] = _Bucket(max(self.left(owner, now) - amount, -self.burst), now)

    def seconds_until(self, owner: str, amount: float, now: float) -> float:
        """Return when the owner may spend so much, in seconds from now; 0: at once. More than the burst needs it whole."""
        return max(0.0, (min(amount, self.burst) - self.left(owner, now)) / self.rate)
