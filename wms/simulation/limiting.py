"""Limits on jobs in a simulation, counted by the matcher's own functions. A limit that is reached closes its jobs in the queue index."""

from collections.abc import Iterable
from math import inf

from wms.matching.grouping import Requirements
from wms.matching.limits import (
    Bounds,
    Count,
    LimitKey,
    LimitRule,
    LimitSet,
    after,
    pairs_by_place,
    room,
    seconds_until_token,
)
from wms.queue_index.index import QueueIndex
from wms.site import ComputingElement

_AFTER_TOKEN_SECONDS = 1e-6
"""By how many seconds a check follows the time of a new token, since sums of floats may fall slightly short of it."""


class Limiting:
    """The present use of each limit on jobs in a simulation, which opens and closes jobs in the queue index."""

    def __init__(self, limits: Iterable[LimitRule], index: QueueIndex) -> None:
        self._limits = LimitSet(limits)
        self._index = index
        self._counts: dict[LimitKey, Count] = {}
        self._counted_at: dict[LimitKey, float] = {}
        self._closed: set[LimitKey] = set()

    def __bool__(self) -> bool:
        return bool(self._limits)

    def matched(self, requirements: Requirements, element: ComputingElement, now: float) -> float:
        """Count a job that starts at a computing element under its limits, and close those that are reached.

        Return the seconds until a limited rate allows the next start; infinity if no rate is exhausted.
        """
        opens = inf
        bounds = self._concerning(requirements, element)
        for key, bound in bounds.items():
            count = after(bound, self._count(key, now), 1)
            self._counts[key], self._counted_at[key] = count, now
            if not room(bound, count):
                self._closed.add(key)
                if bound.running is None or count.running < bound.running:
                    opens = min(opens, seconds_until_token(bound, count) + _AFTER_TOKEN_SECONDS)
        self._tell(bounds)
        return opens

    def ended(self, requirements: Requirements, element: ComputingElement, now: float) -> bool:
        """Count a job that ended at a computing element; return whether a limit that was closed is open again."""
        bounds = self._concerning(requirements, element)
        for key, bound in bounds.items():
            count = after(bound, self._count(key, now), 0)
            self._counts[key], self._counted_at[key] = count._replace(running=count.running - 1), now
        return self.open_due(requirements, element, now)

    def open_due(self, requirements: Requirements, element: ComputingElement, now: float) -> bool:
        """Open the limits on such jobs at a computing element that have room again; return whether there were any."""
        bounds = self._concerning(requirements, element)
        opened = {key for key in self._closed & bounds.keys() if room(bounds[key], self._count(key, now))}
        self._closed -= opened
        self._tell(dict.fromkeys(opened))
        return bool(opened)

    def _concerning(self, requirements: Requirements, element: ComputingElement) -> Bounds:
        return self._limits.concerning(requirements, element.site, element.ce)

    def _count(self, key: LimitKey, now: float) -> Count:
        count = self._counts.get(key)
        if count is None:
            return Count()
        if count.idle_seconds is None:
            return count
        return count._replace(idle_seconds=now - self._counted_at[key])

    def _tell(self, keys: Iterable[LimitKey]) -> None:
        """Set in the queue index which limits are closed at the sites and elements of these keys."""
        for (site, ce), pairs in pairs_by_place(keys, self._closed).items():
            self._index.close(site, pairs, ce=ce)
