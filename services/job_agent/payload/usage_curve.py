"""The CPU time and memory that one payload used over time: a limited number of points, further apart the longer it runs.

Each point has the CPU time until then and the most memory since the point before. When there are too many points, pairs of
them are joined, and the least time between two points doubles. So the size of a curve does not grow with the run time.
"""

from typing import Final

from wms.messages.reports import POINTS_LIMIT, UsagePoint

SPACING_SECONDS: Final = 5.0
"""The least seconds between two points of a new curve. The value doubles each time that points are joined."""


class UsageCurve:
    """The points of CPU time and memory of one payload, and which of them were reported.

    A point is: seconds since the start, CPU milliseconds, KiB of memory.
    """

    def __init__(self) -> None:
        self.points: list[UsagePoint] = []
        self._spacing = SPACING_SECONDS
        self._due_at = 0.0
        self._most_kib = 0
        self._told: tuple[UsagePoint, ...] = ()

    def add(self, seconds: float, cpu_seconds: float, memory_bytes: int) -> None:
        """Add a sample taken `seconds` after the payload began. It becomes a point if the least time since the last point has passed.

        Otherwise only its memory counts, for the next point. Call it in the order of time.
        """
        self._most_kib = max(self._most_kib, memory_bytes // 1024)
        if seconds < self._due_at:
            return
        self.points.append((int(seconds), int(cpu_seconds * 1_000), self._most_kib))
        self._most_kib = 0
        if len(self.points) > POINTS_LIMIT:
            self._thin()
        self._due_at = self.points[-1][0] + self._spacing

    def news(self) -> tuple[UsagePoint, ...]:
        """Return all points if some of them were not returned before, else none. A single point is never returned."""
        points = tuple(self.points)
        if len(points) < 2 or points == self._told:
            return ()
        self._told = points
        return points

    def _thin(self) -> None:
        """Replace each pair of points by one. The first point stays alone, so that the curve begins where it did."""
        first, rest = self.points[:1], self.points[1:]
        pairs = zip(rest[::2], rest[1::2], strict=False)
        joined = [(later[0], later[1], max(earlier[2], later[2])) for earlier, later in pairs]
        self.points = first + joined + (rest[-1:] if len(rest) % 2 else [])
        self._spacing *= 2
