"""How much each owner of messages may spend, in seconds of processing or in bytes, by token buckets."""

from typing import NamedTuple

from wms.bounded_cache import BoundedCache

OWNERS = 10_000
"""For how many owners budgets are remembered. Those that spent nothing for longest are forgotten first; their budgets are nearly full."""


class _Bucket(NamedTuple):
    left: float
    at: float


class Budget:
    """What each owner may spend. A budget holds at most `burst` and regains `rate` a second. Times `now` are in monotonic seconds."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._buckets = BoundedCache[str, _Bucket](OWNERS)

    def left(self, owner: str, now: float) -> float:
        """Return how much the owner may spend now. It is negative if the owner spent more than there was."""
        bucket = self._buckets.get(owner)
        if bucket is None:
            return self.burst
        return min(self.burst, bucket.left + (now - bucket.at) * self.rate)

    def spend(self, owner: str, amount: float, now: float) -> None:
        """Subtract `amount` from the owner's budget, even if less is left. The budget falls to `-burst` at most."""
        self._buckets[owner] = _Bucket(max(self.left(owner, now) - amount, -self.burst), now)

    def seconds_until(self, owner: str, amount: float, now: float) -> float:
        """Return in how many seconds the owner may spend `amount`; 0 for now. More than `burst` may be spent once the budget is full."""
        return max(0.0, (min(amount, self.burst) - self.left(owner, now)) / self.rate)
