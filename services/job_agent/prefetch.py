"""Estimates how many jobs a pilot should fetch ahead, from the run times of recent jobs."""

from collections import deque
from collections.abc import Iterable
from statistics import median, median_low

REMEMBERED = 8
AHEAD_LIMIT = 8
"""The most jobs fetched ahead for each slot. If the pilot dies, the fetched jobs wait until their leases end."""


class Prefetch:
    """Estimates how many jobs to fetch ahead, so that slots stay busy for `ahead_seconds` without a new request."""

    def __init__(self, ahead_seconds: float) -> None:
        self._ahead_seconds = ahead_seconds
        self._recent: deque[float] = deque(maxlen=REMEMBERED)

    def ended(self, seconds: float) -> None:
        """Record that a job has ended after this run time in seconds."""
        self._recent.append(seconds)

    def usual_seconds(self, ages: Iterable[float]) -> float:
        """Return the usual run time of a job in seconds. Infinite until a job has ended.

        `ages` are the seconds for which running jobs have run. The result is at least their median.
        """
        if not self._recent:
            return float("inf")
        # Half of the running jobs are older than the median of the ended ones: these no longer predict the run time.
        return max(median(self._recent), median_low([*ages] or [0.0]))

    def ahead(self, slots: int, ages: Iterable[float]) -> int:
        """Return how many single-processor jobs to fetch ahead for a pilot with `slots` slots.

        `ages` are the seconds for which running jobs have run.
        """
        return int(slots * min(AHEAD_LIMIT, self._ahead_seconds / max(self.usual_seconds(ages), 0.001)))
