"""Estimates how many jobs a pilot should fetch ahead, from the run times of recent jobs."""

from collections import deque
from collections.abc import Iterable
from statistics import median, median_low

REMEMBERED = 8
AHEAD_LIMIT = 8
"""The most jobs to fetch ahead for each slot. It limits how many jobs wait for the end of their leases if the pilot dies."""


class Prefetch:
    """Estimates how many jobs to fetch ahead, so that slots stay busy for `ahead_seconds` without a new match request."""

    def __init__(self, ahead_seconds: float) -> None:
        self._ahead_seconds = ahead_seconds
        self._recent: deque[float] = deque(maxlen=REMEMBERED)

    def ended(self, seconds: float) -> None:
        """Record that a job has ended after running for `seconds`. The last 8 such times are remembered."""
        self._recent.append(seconds)

    def usual_seconds(self, ages: Iterable[float]) -> float:
        """Return the usual run time of a job in seconds: the median of the last jobs that ended. Infinite if none has ended yet.

        `ages` are the seconds for which the running jobs have run so far. If their median is longer, it is returned instead.
        """
        if not self._recent:
            return float("inf")
        # Half of the running jobs are older than the median of the ended ones: these no longer predict the run time.
        return max(median(self._recent), median_low([*ages] or [0.0]))

    def ahead(self, slots: int, ages: Iterable[float]) -> int:
        """Return how many single-processor jobs to fetch ahead for a pilot with `slots` slots; at most AHEAD_LIMIT for each.

        `ages` are the seconds for which the running jobs have run so far.
        """
        return int(slots * min(AHEAD_LIMIT, self._ahead_seconds / max(self.usual_seconds(ages), 0.001)))
