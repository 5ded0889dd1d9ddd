"""The agenda: what is to happen when, and what time it is meanwhile."""

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any


class Agenda:
    """A virtual clock: it stands still while something happens and jumps to what comes next.

    What is due at the same time happens in the order in which it was noted.
    """

    __slots__ = ("_due", "_noted", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._noted = 0

    def after(self, seconds: float, act: Callable[[Any], None], argument: Any) -> None:
        """Note what is to be done so many seconds from now."""
        self._noted += 1
        heappush(self._due, (self.now + seconds, self._noted, act, argument))

    @property
    def next_at(self) -> float:
        """When the next thing is due; infinity when nothing is."""
        return self._due[0][0] if self._due else inf

    def step(self) -> None:
        """Do the next thing; there must be one."""
        self.now, _, act, argument = heappop(self._due)
        act(argument)
