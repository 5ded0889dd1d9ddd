"""How many CPUs are reserved over time, as a step function, and the earliest time at which so many more are free."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta


class CpuSteps:
    """A step function of time: the number of reserved CPUs. Before its first step none is reserved, and after its last one neither."""

    def __init__(self) -> None:
        self._times: list[datetime] = []
        """The times at which the number of reserved CPUs changes, in order."""
        self._used: list[int] = []
        """For each of `_times`, the number of reserved CPUs from that time on."""

    @property
    def times(self) -> Sequence[datetime]:
        """The times at which the number of reserved CPUs changes, in order."""
        return self._times

    def most(self) -> int:
        """Return the largest number of CPUs that are reserved at the same time."""
        return max(self._used, default=0)

    def change(self, begin: datetime, end: datetime, cpus: int) -> None:
        """Add CPUs to the number that is reserved from `begin` until `end`; a negative number takes them away."""
        first, last = self._cut(begin), self._cut(end)
        for step in range(first, last):
            self._used[step] += cpus
        self._merge(last)
        self._merge(first)

    def earliest(
        self, cpus: int, duration: timedelta, first: datetime, last: datetime, most: int
    ) -> datetime | None:
        """Return the earliest start from `first` to `last` from which at most `most` CPUs are reserved, with `cpus` more for a duration.

        Return None if there is none.
        """
        if cpus > most or first > last:
            return None
        start = first
        step = max(0, bisect_right(self._times, start) - 1)
        while step < len(self._times) and self._times[step] < start + duration:
            if self._used[step] + cpus > most and self._end_of(step) > start:
                start = self._end_of(step)
                if start > last:
                    return None
            step += 1
        return start

    def _cut(self, at: datetime) -> int:
        """Return the index of the step that begins at a time. If there is none, it is added."""
        step = bisect_left(self._times, at)
        if step == len(self._times) or self._times[step] != at:
            self._times.insert(step, at)
            self._used.insert(step, self._used[step - 1] if step else 0)
        return step

    def _merge(self, step: int) -> None:
        """Remove the step with this index if the number of reserved CPUs does not change there."""
        if self._used[step] == (self._used[step - 1] if step else 0):
            del self._times[step], self._used[step]

    def _end_of(self, step: int) -> datetime:
        # The last step has no CPUs reserved, so that nobody asks for its end.
        return self._times[step + 1]
