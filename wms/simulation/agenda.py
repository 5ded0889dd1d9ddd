"""The agenda of a simulation: future events, ordered by time, and the virtual clock."""

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any


class Agenda:
    """A virtual clock with scheduled events. The clock stands still during an event and jumps to the next one.

    Events at the same time happen in the order in which they were added.
    """

    __slots__ = ("_due", "_noted", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._noted = 0

    def after(self, seconds: float, act: Callable[[Any], None], argument: Any) -> None:
        """Schedule the call `act(argument)` `seconds` seconds from now."""
        self._noted += 1
        heappush(self._due, (self.now + seconds, self._noted, act, argument))

    @property
    def next_at(self) -> float:
        """Return the time of the next event; infinity if there is none."""
        return self._due[0][0] if self._due else inf

    def step(self) -> None:
        """Run the next event; there must be one."""
        self.now, _, act, argument = heappop(self._due)
        act(argument)
