"""Token buckets that limit how much each owner of messages may spend, in seconds of processing or in bytes."""

from typing import NamedTuple

from wms.bounded_cache import BoundedCache

OWNERS = 10_000
"""The largest number of owners whose budgets are kept. Beyond it, the owner that spent nothing for longest is dropped: its budget is nearly full."""


class _Bucket(NamedTuple):
    left: float
    at: float


class Budget:
    """A token bucket for each owner. A bucket holds at most `burst` and regains `rate` a second. Times `now` are in monotonic seconds."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._buckets = BoundedCache[str, _Bucket](OWNERS)

    def left(self, owner: str, now: float) -> float:
        """Return how much the owner may spend now. It is negative if the owner has spent more than its bucket held."""
        bucket = self._buckets.get(owner)
        if bucket is None:
            return self.burst
        return min(self.burst, bucket.left + (now - bucket.at) * self.rate)

    def spend(self, owner: str, amount: float, now: float) -> None:
        """Subtract `amount` from the owner's budget, even if less is left. The budget falls to `-burst` at most."""
        self._buckets[owner] = _Bucket(max(self.left(owner, now) - amount, -self.burst), now)

    def seconds_until(self, owner: str, amount: float, now: float) -> float:
        """Return in how many seconds the owner may spend `amount`; 0 if at once. More than `burst` may be spent as soon as the bucket is full."""
        return max(0.0, (min(amount, self.burst) - self.left(owner, now)) / self.rate)
