"""The agenda of a simulation: the events to come, in the order of their times, and the virtual clock."""

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any


class Agenda:
    """A virtual clock, `now` in seconds, and the events to come. It stands still during an event and jumps to the next.

    Events at the same time happen in the order in which they were added.
    """

    __slots__ = ("_due", "_noted", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._noted = 0

    def after(self, seconds: float, act: Callable[[Any], None], argument: Any) -> None:
        """Let `act(argument)` be called `seconds` seconds from now, by the virtual clock."""
        self._noted += 1
        heappush(self._due, (self.now + seconds, self._noted, act, argument))

    @property
    def next_at(self) -> float:
        """The time of the next event, in seconds of the virtual clock; infinity if there is none."""
        return self._due[0][0] if self._due else inf

    def step(self) -> None:
        """Set the clock to the next event, which must exist, and call its function."""
        self.now, _, act, argument = heappop(self._due)
        act(argument)
