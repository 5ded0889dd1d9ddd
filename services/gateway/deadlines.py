"""Deadlines of many connections, of which all allow the same time. However many are over at once, other callbacks run between them."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

AT_ONCE: Final = 32
"""How many deadlines are acted upon before other callbacks of the event loop run."""

T = TypeVar("T")


class Deadlines(Generic[T]):
    """Calls `act` with each member a fixed number of seconds after `set`, unless `lift` comes first."""

    def __init__(self, seconds: float, act: Callable[[T], None]) -> None:
        self._seconds = seconds
        self._act = act
        self._due: OrderedDict[T, float] = OrderedDict()
        """When each deadline is over, by the event loop's clock; the next one first."""
        self._is_waiting = False

    def __len__(self) -> int:
        return len(self._due)

    def set(self, member: T) -> None:
        """Start the deadline of a member. One that runs already is not changed."""
        if member not in self._due:
            loop = asyncio.get_running_loop()
            self._due[member] = loop.time() + self._seconds
            if not self._is_waiting:
                self._is_waiting = True
                loop.call_later(self._seconds, self._look)

    def lift(self, member: T) -> None:
        """Stop the deadline of a member, if it runs."""
        self._due.pop(member, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(AT_ONCE):
            member = next(iter(self._due), None)
            if member is None:
                self._is_waiting = False
                return
            if (left := self._due[member] - loop.time()) > 0:
                loop.call_later(left, self._look)
                return
            del self._due[member]
            self._act(member)
        loop.call_soon(self._look)
