"""The headroom of limits: how many more jobs each limit lets start. Jobs that a limit keeps back need no pilots."""

from collections.abc import Collection, Iterable

from wms.ids import CeId
from wms.matching.canary import is_canary
from wms.matching.grouping import Requirements
from wms.matching.limits import Count, Counts, LimitKey, LimitSet, StrictestLimit, room, tokens
from wms.site import ComputingElement

ARRIVAL_SECONDS = 30.0
"""The assumed seconds until a pilot that is sent now asks for jobs. A rate limit lets further jobs start in this time."""


class LimitHeadroom:
    """How many more jobs each limit lets start, given the present counts. It shrinks as a plan assigns jobs to pilots."""

    def __init__(self, limits: LimitSet | None = None, counts: Counts | None = None) -> None:
        self._limits = limits or LimitSet()
        self._counts: Counts = counts or {}
        self._left: dict[LimitKey, int] = {}

    def __bool__(self) -> bool:
        return bool(self._limits)

    @property
    def by_owner(self) -> bool:
        """Whether any limit distinguishes owners or groups."""
        return bool(self._limits.attributes & {"owner", "owner_group"})

    def keys(self, requirements: Requirements, element: ComputingElement) -> tuple[LimitKey, ...]:
        """Return the keys of the limits that count jobs with these requirements at an element; empty for canaries.

        Only keys that were returned can be given to the other methods.
        """
        if not self._limits or is_canary(requirements):
            return ()
        bounds = self._limits.concerning(requirements, element.site, element.ce)
        for key, bound in bounds.items():
            if key not in self._left:
                self._left[key] = _room(bound, self._counts.get(key, Count()))
        return tuple(bounds)

    def left(self, keys: tuple[LimitKey, ...], most: int) -> int:
        """Return how many jobs, at most `most`, may still start under all of these keys."""
        return min((self._left[key] for key in keys), default=most)

    def take(self, keys: tuple[LimitKey, ...], jobs: int) -> None:
        """Subtract `jobs` from what the limits with these keys still let start."""
        for key in keys:
            self._left[key] -= jobs

    def fullest(self, keys: tuple[LimitKey, ...]) -> str:
        """Return a text for people on one limit: the one with these keys that lets the fewest further jobs start."""
        key = min(keys, key=self._left.__getitem__)
        return key.text()


def concerned(limits: LimitSet, work: Iterable[Requirements], places: Collection[CeId]) -> set[LimitKey]:
    """Return the keys of all limits that count any of the jobs with these requirements at any of the places."""
    return {
        key for requirements in work for place in places for key in limits.concerning(requirements, *place)
    }


def _room(bound: StrictestLimit, count: Count) -> int:
    """Return how many jobs a limit lets start until a pilot that is sent now asks for jobs."""
    if bound.burst is None:
        return room(bound, count)
    coming = int(tokens(bound, count) + bound.per_second * ARRIVAL_SECONDS)
    return min(coming, room(bound._replace(burst=None), count))
