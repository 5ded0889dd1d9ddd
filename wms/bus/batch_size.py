"""The size of a consumer's next batch, adapted to the duration of earlier batches."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

GOAL_SECONDS = 0.5
"""The target duration of a batch in seconds. Other messages of its partitions wait meanwhile."""
LEAST_BYTES = 65_536


class Sized(Protocol):
    """An object with a size in bytes."""

    @property
    def size(self) -> int:
        """Return the size in bytes."""


R = TypeVar("R", bound=Sized)


class BatchSize:
    """The limits of a batch in messages and bytes. Slow batches lower the limits, quick ones raise them."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self.count = most
        self.bytes = most_bytes

    def took(self, seconds: float, count: int, size: int) -> None:
        """Adapt the limits to a batch of `count` messages and `size` bytes that took `seconds`."""
        if seconds > GOAL_SECONDS:
            share = max(0.1, GOAL_SECONDS / seconds)
            self.count = max(1, int(min(self.count, count) * share))
            self.bytes = max(LEAST_BYTES, int(min(self.bytes, size) * share))
        elif seconds < GOAL_SECONDS / 2:
            self.count = min(self._most, 2 * self.count)
            self.bytes = min(self._most_bytes, 2 * self.bytes)

    def parts(self, records: Sequence[R]) -> Iterator[Sequence[R]]:
        """Yield the records in batches, in order. Each batch keeps the current limits but has at least one record."""
        begin = 0
        while begin < len(records):
            end = self._end(records, begin)
            yield records[begin:end]
            begin = end

    def _end(self, records: Sequence[R], begin: int) -> int:
        room = self.bytes - records[begin].size
        end = begin + 1
        while end < min(len(records), begin + self.count) and (room := room - records[end].size) >= 0:
            end += 1
        return end
