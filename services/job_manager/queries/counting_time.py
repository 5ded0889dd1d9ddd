"""The time for which the database counts jobs for each user."""

import time
from collections.abc import Callable

from wms.bounded_cache import BoundedCache

SHARE = 0.5
"""The part of all time that the database counts for one user, if this user asks without a pause."""
USERS = 10_000


class CountingTime:
    """Says for how long the database may count for a user: a bounded time at once, and a share of the time that passes."""

    def __init__(self, most_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Each user has `most_seconds` at first, and never more. `clock` returns monotonic seconds."""
        self._most = most_seconds
        self._clock = clock
        self._full_at: BoundedCache[str, float] = BoundedCache(USERS)
        """When a user who asks no more will have all seconds again, in monotonic seconds."""

    def left(self, user: str) -> float:
        """Return for how many seconds the database may count for this user now."""
        return max(0.0, self._most - SHARE * self._debt(user))

    def spend(self, user: str, seconds: float) -> None:
        """Note that the database has counted for this user for so many seconds."""
        now = self._clock()
        self._full_at[user] = now + self._debt(user) + seconds / SHARE

    def _debt(self, user: str) -> float:
        return max(0.0, self._full_at.get(user, 0.0) - self._clock())
