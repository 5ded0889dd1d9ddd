"""Bytes of memory or disk that holders share. What one holds, however long, leaves room for others.

A holder of some bytes gets more only while at least as many are left to others as it would then have. So the first holder can have
half, and each later one half of the rest. Who holds nothing gets whatever is left.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from services.gateway.problem import TooMany
from wms.errors import Unavailable

AGAIN_SECONDS: Final = 2.0
MEGABYTE: Final = 1_000_000


class SharedRoom:
    """The bytes that are left, and how many each holder has."""

    def __init__(self, count: int, what: str) -> None:
        """Share `count` bytes among holders of `what`, which is named in errors, such as "archives"."""
        self.left = count
        self._what = what
        self._held = Counter[str]()
        self.free_some: Callable[[], bool] = lambda: False
        """Frees bytes that are held without need. Returns whether there were any."""

    @contextlib.contextmanager
    def held(self, holder: str, count: int) -> Iterator[None]:
        """Hold bytes for the `with` block. The errors are those of `take`."""
        self.take(holder, count)
        try:
            yield
        finally:
            self.give_back(holder, count)

    def take(self, holder: str, count: int) -> None:
        """Hold bytes. Raise TooMany if the holder has its share, and Unavailable if there are not so many."""
        if not count:
            return
        while (has_share := self._has_share(holder, count)) or count > self.left:
            if self.free_some():
                continue
            if has_share:
                raise TooMany(f"{self._what} of this user fill their share of this gateway", AGAIN_SECONDS)
            raise Unavailable(f"the {self._what} on their way fill this gateway")
        self.left -= count
        self._held[holder] += count

    def give_back(self, holder: str, count: int) -> None:
        """Give back bytes that the holder took."""
        self.left += count
        self._held[holder] -= count
        if not self._held[holder]:
            del self._held[holder]

    def _has_share(self, holder: str, count: int) -> bool:
        held = self._held.get(holder, 0)
        return held > 0 and held + count > self.left - count
