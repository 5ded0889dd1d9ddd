"""The agenda of a simulation: the events to come, in the order of their times, and the virtual clock."""

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any


class Agenda:
    """The events to come and a virtual clock, `now` in seconds. The clock stands still during an event and jumps to the time of the next.

    Events at the same time happen in the order in which they were added.
    """

    __slots__ = ("_due", "_noted", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._noted = 0

    def after(self, seconds: float, act: Callable[[Any], None], argument: Any) -> None:
        """Add an event: `act(argument)` is called when the virtual clock is `seconds` seconds later than now."""
        self._noted += 1
        heappush(self._due, (self.now + seconds, self._noted, act, argument))

    @property
    def next_at(self) -> float:
        """The time of the next event, in seconds of the virtual clock; infinity if there is none."""
        return self._due[0][0] if self._due else inf

    def step(self) -> None:
        """Set the clock to the time of the next event, and call that event's function. Raise IndexError if there is no event."""
        self.now, _, act, argument = heappop(self._due)
        act(argument)
