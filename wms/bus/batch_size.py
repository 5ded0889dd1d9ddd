"""How many messages a consumer's next batch has. It adapts to how long earlier batches took."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

GOAL_SECONDS = 0.5
"""How long a batch should take, in seconds. Meanwhile, other messages of the same partitions wait."""
LEAST_BYTES = 65_536


class Sized(Protocol):
    """A record whose size in bytes is known."""

    @property
    def size(self) -> int:
        """Return the size in bytes."""


R = TypeVar("R", bound=Sized)


class BatchSize:
    """How many messages, and bytes, a batch may have, at most `most` and `most_bytes`. Slow batches lower both, quick ones raise them."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self.count = most
        self.bytes = most_bytes

    def took(self, seconds: float, count: int, size: int) -> None:
        """Adapt the limits of batches after one of `count` messages and `size` bytes that took `seconds` seconds."""
        if seconds > GOAL_SECONDS:
            share = max(0.1, GOAL_SECONDS / seconds)
            self.count = max(1, int(min(self.count, count) * share))
            self.bytes = max(LEAST_BYTES, int(min(self.bytes, size) * share))
        elif seconds < GOAL_SECONDS / 2:
            self.count = min(self._most, 2 * self.count)
            self.bytes = min(self._most_bytes, 2 * self.bytes)

    def parts(self, records: Sequence[R]) -> Iterator[Sequence[R]]:
        """Divide records into batches within the present limits, in order. A record that is larger is a batch by itself."""
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
