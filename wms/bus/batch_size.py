"""The size of a consumer's next batch, by the time that earlier batches took."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

GOAL_SECONDS = 0.5
"""The time that a batch should take at most, as other messages of its partitions wait meanwhile."""
LEAST_BYTES = 65_536


class Sized(Protocol):
    """Something with a size in bytes."""

    @property
    def size(self) -> int:
        """Return the bytes."""


R = TypeVar("R", bound=Sized)


class BatchSize:
    """The most messages and bytes of a batch; a batch that took too long makes the next ones smaller."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self.count = most
        self.bytes = most_bytes

    def took(self, seconds: float, count: int, size: int) -> None:
        """Adapt to the duration of a batch of so many messages and bytes."""
        if seconds > GOAL_SECONDS:
            share = max(0.1, GOAL_SECONDS / seconds)
            self.count = max(1, int(min(self.count, count) * share))
            self.bytes = max(LEAST_BYTES, int(min(self.bytes, size) * share))
        elif seconds < GOAL_SECONDS / 2:
            self.count = min(self._most, 2 * self.count)
            self.bytes = min(self._most_bytes, 2 * self.bytes)

    def parts(self, records: Sequence[R]) -> Iterator[Sequence[R]]:
        """Yield the records in batches, in order, each of the size that holds when it begins: at least one record."""
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
