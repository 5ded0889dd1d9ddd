"""Budgets of owners, in seconds of processing or in bytes: token buckets."""

from typing import NamedTuple

from wms.bounded_cache import BoundedCache

OWNERS = 10_000
"""At most so many owners are remembered. Of more, those that spent nothing for longest have nearly full budgets."""


class _Bucket(NamedTuple):
    left: float
    at: float


class Budget:
    """The budget of each owner: `burst` at once, and `rate` a second in the long run. `now` is in monotonic seconds."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._buckets = BoundedCache[str, _Bucket](OWNERS)

    def left(self, owner: str, now: float) -> float:
        """Return what the owner may spend now; a negative number was spent in advance."""
        bucket = self._buckets.get(owner)
        if bucket is None:
            return self.burst
        return min(self.burst, bucket.left + (now - bucket.at) * self.rate)

    def spend(self, owner: str, amount: float, now: float) -> None:
        """Take an amount from the owner's budget, even if less is left."""
        self._buckets[owner] = _Bucket(max(self.left(owner, now) - amount, -self.burst), now)

    def seconds_until(self, owner: str, amount: float, now: float) -> float:
        """Return after how many seconds the owner may spend so much; 0: at once. An amount above the burst needs a full budget."""
        return max(0.0, (min(amount, self.burst) - self.left(owner, now)) / self.rate)
