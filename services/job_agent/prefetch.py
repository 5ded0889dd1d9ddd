"""How many jobs to fetch ahead, by how long the last ones took."""

from collections import deque
from collections.abc import Iterable
from statistics import median, median_low

REMEMBERED = 8
AHEAD_LIMIT = 8
"""Jobs fetched ahead, a slot, at most: what a pilot holds is lost with it, if only for a while."""


class Prefetch:
    """Learns from the ends of a few jobs, and forgets at once when those that run now take longer."""

    def __init__(self, ahead_seconds: float) -> None:
        self._ahead_seconds = ahead_seconds
        self._recent: deque[float] = deque(maxlen=REMEMBERED)

    def ended(self, seconds: float) -> None:
        """Learn from a job that ran so long."""
        self._recent.append(seconds)

    def usual_seconds(self, ages: Iterable[float]) -> float:
        """Return what a job takes, given for how long those that run now have run; infinite while nothing is known."""
        if not self._recent:
            return float("inf")
        # Half of those that run are over it by now: what ended before them tells no more.
        return max(median(self._recent), median_low([*ages] or [0.0]))

    def ahead(self, slots: int, ages: Iterable[float]) -> int:
        """Return how many single-processor jobs keep so many slots busy for the time to be fetched ahead."""
        return int(slots * min(AHEAD_LIMIT, self._ahead_seconds / max(self.usual_seconds(ages), 0.001)))
