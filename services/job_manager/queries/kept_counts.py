"""Counts that are kept for a while, so that repeated queries by many users cost little."""

import time
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from wms.bounded_cache import BoundedCache

Key = TypeVar("Key")
Counts = TypeVar("Counts")

KEPT_FOR = 5.0
"""How long counts are kept in memory, as a multiple of the time that counting took."""


class _Kept(NamedTuple, Generic[Counts]):
    counts: Counts
    until: float
    """In monotonic seconds."""


class KeptCounts(Generic[Key, Counts]):
    """Counts by a key that says what was counted. They are used again for five times as long as counting took.

    So users who ask for the same counts take at most a sixth of the time of a database connection.
    """

    def __init__(
        self,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_kept: Callable[[Counts], bool] = lambda _: True,
    ) -> None:
        """Start without counts, and keep those of `most` keys. `clock` returns monotonic seconds.

        Counts for which `is_kept` returns False are counted anew for each query.
        """
        self._clock = clock
        self._is_kept = is_kept
        self._kept: BoundedCache[Key, _Kept[Counts]] = BoundedCache(most)

    async def read(self, key: Key, count: Callable[[Counts | None], Awaitable[Counts]]) -> Counts:
        """Return the counts of this key: those that are kept, if they are young enough, else those that `count` returns.

        `count` is given the last counts of the key, however old, or None if there are none.
        """
        began = self._clock()
        kept = self._kept.get(key)
        if kept is not None and began < kept.until:
            return kept.counts
        counts = await count(kept.counts if kept else None)
        now = self._clock()
        if self._is_kept(counts):
            self._kept[key] = _Kept(counts, now + KEPT_FOR * (now - began))
        return counts
