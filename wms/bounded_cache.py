"""A dict with a bounded number of entries."""

from itertools import islice
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict of at most `most` entries: setting a new key in a full one drops the quarter of the entries set longest ago.

    Reading is a plain dict's and does not renew an entry; setting does. `update` and `setdefault` ignore the bound. A quarter is
    dropped at a time, as dicts find their oldest entry slowly after many other entries were deleted before it.
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
