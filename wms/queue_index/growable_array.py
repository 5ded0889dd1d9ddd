"""Arrays that grow at the end, to be read as a numpy array or item by item."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Slots = NDArray[np.int32]


class GrowableArray:
    """A numpy array of one type that grows at the end. `length` is the number of items."""

    __slots__ = ("_room", "items", "length")

    def __init__(self, dtype: type[np.generic]) -> None:
        self.length = 0
        self._hold(np.zeros(64, dtype=dtype))

    def _hold(self, room: NDArray[Any]) -> None:
        self._room = room
        self.items: Any = room.data
        """The items, for fast reading and writing of single values. It becomes invalid at the next append."""

    def append(self, value: Any) -> None:
        """Add one value at the end; earlier `items` and `values` are no longer valid."""
        if self.length == len(self._room):
            self._hold(np.concatenate([self._room, np.zeros_like(self._room)]))
        self.items[self.length] = value
        self.length += 1

    def extend(self, values: ArrayLike) -> None:
        """Add all values at the end, in order; earlier `items` and `values` are no longer valid."""
        new = np.asarray(values, dtype=self._room.dtype)
        length = self.length + len(new)
        if length > len(self._room):
            room = np.zeros(max(length, 2 * len(self._room)), dtype=self._room.dtype)
            room[: self.length] = self.values
            self._hold(room)
        self._room[self.length : length] = new
        self.length = length

    @property
    def values(self) -> NDArray[Any]:
        """The items as a numpy array without a copy; writable, valid until the next append."""
        return self._room[: self.length]
