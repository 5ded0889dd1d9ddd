"""A dict with a bounded number of entries."""

from itertools import islice
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict of at most `most` entries. If a new key is set in a full one, the oldest quarter of the entries is dropped.

    An entry's age counts from when it was last set; reading does not renew it. `update` and `setdefault` ignore the bound. A quarter is dropped at
    once, because a dict finds its oldest entry slowly after many deletions.
    """

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        if len(self) >= self._most:
            self._drop_oldest()
        super().__setitem__(key, value)

    def _drop_oldest(self) -> None:
        for key in list(islice(self, 1 + self._most // 4)):
            self.pop(key, None)  # another thread may have dropped it
