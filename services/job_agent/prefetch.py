"""The number of jobs to fetch ahead, estimated from the run times of recent jobs."""

from collections import deque
from collections.abc import Iterable
from statistics import median, median_low

REMEMBERED = 8
AHEAD_LIMIT = 8
"""The most jobs fetched ahead per slot. Jobs of a pilot that dies wait for their leases to end."""


class Prefetch:
    """An estimate of the usual run time of jobs, from the last few that ended and the ages of those that run now."""

    def __init__(self, ahead_seconds: float) -> None:
        self._ahead_seconds = ahead_seconds
        self._recent: deque[float] = deque(maxlen=REMEMBERED)

    def ended(self, seconds: float) -> None:
        """Record the run time of a job that ended, in seconds."""
        self._recent.append(seconds)

    def usual_seconds(self, ages: Iterable[float]) -> float:
        """Return the usual run time of a job in seconds, infinite until a job has ended.

        `ages` are the seconds for which running jobs have run; the result is at least their median.
        """
        if not self._recent:
            return float("inf")
        # Half of the running jobs are older than the median of the ended ones: these no longer predict the run time.
        return max(median(self._recent), median_low([*ages] or [0.0]))

    def ahead(self, slots: int, ages: Iterable[float]) -> int:
        """Return the number of single-processor jobs that keep `slots` slots busy for the configured time ahead.

        `ages` are the seconds for which running jobs have run.
        """
        return int(slots * min(AHEAD_LIMIT, self._ahead_seconds / max(self.usual_seconds(ages), 0.001)))
