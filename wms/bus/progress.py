"""The progress of a consumer in each partition: the broker's last answer, the current batch, and the last commit."""

import time
from collections.abc import Iterable, Mapping

import msgspec

from wms.bus.probe import Probes

STALLED_AFTER_SECONDS = 8.0
"""Seconds without service after which a partition is stalled. A healthy one is served several times a second."""


class PartitionHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one assigned partition, as reported in heartbeats."""

    partition: int
    reading: bool
    """Whether a reader is open for the partition."""
    next_offset: int | None
    """The offset of the next message to handle; None before the first reading."""
    end_offset: int | None
    """The end of the partition's log by the broker's last answer; None before the first."""
    served_seconds_ago: float
    """Seconds since a batch of the partition was committed, or the broker reported that nothing is unread."""
    in_hand_offset: int | None = None
    """Offset of the partition's first message in the current batch, which blocks it if the batch is old. None without a batch."""
    busy_seconds: float = 0.0
    """Age in seconds of the current batch of the partition's lane; 0 without a batch."""
    step_seconds_ago: float = 0.0
    """Seconds since the last step of the current batch, which is a prepared message or a finished statement."""
    stalled: bool = False
    """Whether the partition was not served for `STALLED_AFTER_SECONDS`."""

    @property
    def lag(self) -> int:
        """The number of messages not handled yet, by the broker's last answer."""
        return max(0, (self.end_offset or 0) - (self.next_offset or 0))


class _Partition(msgspec.Struct):
    served_at: float
    ready_at: float = 0.0
    """When the partition's lane last became ready to read: a reader was opened, or a batch ended."""
    free_at: float = 0.0
    """When the last batch of the partition's lane ended."""
    reading: bool = False
    next_offset: int | None = None
    end_offset: int | None = None
    in_hand: int | None = None
    busy_since: float | None = None
    """When the current batch of the partition's lane began; None without a batch."""
    lane: tuple[int, ...] = ()
    """The partitions in the lane that handles the current batch."""
    stepped_at: float = 0.0
    """When the current batch last made a step."""
    answered_at: int = 0


class ConsumerProgress:
    """The progress of one consumer in all its partitions. It is kept while no reader is open."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self.probes = Probes()

    def assign(self, partitions: Iterable[int]) -> None:
        """Follow exactly these partitions from now on. Known progress is kept."""
        now = time.monotonic()
        known = self._partitions
        self._partitions = {each: known.get(each) or _Partition(now) for each in partitions}

    def opened(self, partitions: Iterable[int], next_offsets: Mapping[int, int]) -> None:
        """Record that a reader is open for these partitions, at these offsets."""
        now = time.monotonic()
        for number in partitions:
            each = self._partition(number)
            each.reading, each.ready_at, each.answered_at = True, now, 0
            each.next_offset = next_offsets[number]

    def closed(self, partitions: Iterable[int]) -> None:
        """Record that no reader is open for these partitions."""
        for number in partitions:
            self._partition(number).reading = False

    def taken(self, lane: Iterable[int], first_offsets: Mapping[int, int]) -> None:
        """Record that the lane of these partitions has begun a batch with these first offsets."""
        now = time.monotonic()
        for number in lane:
            each = self._partition(number)
            each.busy_since, each.in_hand = now, first_offsets.get(number)
            each.lane, each.stepped_at = tuple(lane), now

    def stepped(self, partitions: Iterable[int]) -> None:
        """Record a step of the current batches of these partitions' lanes."""
        now = time.monotonic()
        for lane in {self._partition(number).lane for number in partitions}:
            for number in lane:
                self._partition(number).stepped_at = now

    def done(self, lane: Iterable[int]) -> None:
        """Record that a lane's current batch has ended, whether it succeeded or not."""
        now = time.monotonic()
        for number in lane:
            each = self._partition(number)
            each.busy_since = each.in_hand = None
            each.ready_at = each.free_at = now

    def moved(self, next_offsets: Mapping[int, int]) -> None:
        """Record that all messages before these offsets, by partition, are committed."""
        now = time.monotonic()
        for number, offset in next_offsets.items():
            each = self._partition(number)
            each.next_offset, each.served_at = offset, now
        self.probes.moved(next_offsets)

    def heard(self, partition: int, end_offset: int, *, unread: int, answered_at: int) -> bool:
        """Record the broker's answer of time `answered_at` in milliseconds. Return whether it is new and reports nothing unread."""
        each = self._partition(partition)
        each.end_offset = end_offset or each.end_offset
        if unread or answered_at <= each.answered_at:
            return False
        each.served_at, each.answered_at = time.monotonic(), answered_at
        return True

    def unheard(self, lane: Iterable[int]) -> list[int]:
        """Return the partitions of a lane without progress or answer for `STALLED_AFTER_SECONDS`."""
        now = time.monotonic()
        these = [(number, self._partition(number)) for number in lane]
        return [
            number
            for number, each in these
            if now - max(each.served_at, each.ready_at) > STALLED_AFTER_SECONDS
        ]

    def longest_stall_seconds(self) -> float:
        """Return the longest time in seconds for which a partition was not served, among those whose lane has no batch."""
        now = time.monotonic()
        idle = (each for each in self._partitions.values() if each.busy_since is None)
        return max((now - max(each.served_at, each.free_at) for each in idle), default=0.0)

    def longest_batch_seconds(self) -> float:
        """Return the age of the oldest current batch in seconds; 0 without a batch."""
        now = time.monotonic()
        since = (each.busy_since for each in self._partitions.values() if each.busy_since is not None)
        return max((now - each for each in since), default=0.0)

    def health(self) -> list[PartitionHealth]:
        """Return the health of each assigned partition."""
        now = time.monotonic()
        return [_health(number, each, now) for number, each in sorted(self._partitions.items())]

    def _partition(self, number: int) -> _Partition:
        return self._partitions.setdefault(number, _Partition(time.monotonic()))


def _health(number: int, each: _Partition, now: float) -> PartitionHealth:
    return PartitionHealth(
        partition=number,
        reading=each.reading,
        next_offset=each.next_offset,
        end_offset=each.end_offset,
        served_seconds_ago=round(now - each.served_at, 1),
        in_hand_offset=each.in_hand,
        busy_seconds=0.0 if each.busy_since is None else round(now - each.busy_since, 1),
        step_seconds_ago=0.0 if each.busy_since is None else round(now - each.stepped_at, 1),
        stalled=now - each.served_at > STALLED_AFTER_SECONDS,
    )
