"""Limits on jobs in a simulation, counted by the matcher's own functions. While a limit is reached, the queue index offers no job under it."""

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
"""How many seconds are added to the time at which a rate limit allows the next start. Sums of floats may make that time slightly too early."""


class Limiting:
    """The present use of each limit on jobs in a simulation. It tells the queue index which limits are reached and which have room again."""

    def __init__(self, limits: Iterable[LimitRule], index: QueueIndex) -> None:
        self._limits = LimitSet(limits)
        self._index = index
        self._counts: dict[LimitKey, Count] = {}
        self._counted_at: dict[LimitKey, float] = {}
        self._closed: set[LimitKey] = set()

    def __bool__(self) -> bool:
        return bool(self._limits)

    def matched(self, requirements: Requirements, element: ComputingElement, now: float) -> float:
        """Count a job that starts at a computing element against its limits, and close the limits that are reached by it.

        Return the seconds until the next start that a reached rate limit allows; infinity if no rate limit is reached.
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
        """Count that a job with these requirements ended at a computing element; return whether one of its closed limits has room again."""
        bounds = self._concerning(requirements, element)
        for key, bound in bounds.items():
            count = after(bound, self._count(key, now), 0)
            self._counts[key], self._counted_at[key] = count._replace(running=count.running - 1), now
        return self.open_due(requirements, element, now)

    def open_due(self, requirements: Requirements, element: ComputingElement, now: float) -> bool:
        """Open those closed limits on such jobs at a computing element that have room at `now`; return whether there were any."""
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
        """Tell the queue index which limits are closed at the sites and computing elements of these keys."""
        for (site, ce), pairs in pairs_by_place(keys, self._closed).items():
            self._index.close(site, pairs, ce=ce)
