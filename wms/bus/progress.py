"""How far a consumer is in each partition: Kafka's last answer, the batch being handled, and the last commit."""

import time
from collections.abc import Iterable, Mapping

import msgspec

from wms.bus.probe import Probes

STALLED_AFTER_SECONDS = 8.0
"""A partition counts as stalled after this many seconds without progress. A healthy one makes progress several times a second."""


class PartitionHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one partition that is assigned to a service instance, as heartbeats report it."""

    partition: int
    reading: bool
    """Whether the instance has the partition open for reading."""
    next_offset: int | None
    """The offset of the next message to be handled; None before the partition was first read."""
    end_offset: int | None
    """The offset after the last message of the partition, by Kafka's last answer; None before the first."""
    served_seconds_ago: float
    """Seconds since a batch of the partition was committed, or Kafka reported that nothing is unread."""
    in_hand_offset: int | None = None
    """The offset of the partition's first message in the batch being handled; None without a batch."""
    busy_seconds: float = 0.0
    """For how many seconds the batch that this partition waits for has been handled so far; 0 without a batch."""
    step_seconds_ago: float = 0.0
    """Seconds since that batch last made progress: a message was prepared, or a database statement finished."""
    stalled: bool = False
    """Whether the partition made no progress for `STALLED_AFTER_SECONDS`."""

    @property
    def lag(self) -> int:
        """How many messages of the partition are not handled yet, by Kafka's last answer."""
        return max(0, (self.end_offset or 0) - (self.next_offset or 0))


class _Partition(msgspec.Struct):
    served_at: float
    ready_at: float = 0.0
    """When the partition's lane last became ready to read, in monotonic seconds: a reader was opened, or a batch ended."""
    free_at: float = 0.0
    """When the last batch of the partition's lane ended, in monotonic seconds."""
    reading: bool = False
    next_offset: int | None = None
    end_offset: int | None = None
    in_hand: int | None = None
    busy_since: float | None = None
    """When the current batch of the partition's lane began, in monotonic seconds; None without a batch."""
    lane: tuple[int, ...] = ()
    """The partitions in the lane that handles the current batch."""
    stepped_at: float = 0.0
    """When the current batch last made progress, in monotonic seconds."""
    answered_at: int = 0


class ConsumerProgress:
    """How far one consumer is in each of its partitions. The data are kept while no reader is open."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self.probes = Probes()

    def assign(self, partitions: Iterable[int]) -> None:
        """Track exactly these partitions from now on. Data on partitions that were tracked before are kept."""
        now = time.monotonic()
        known = self._partitions
        self._partitions = {each: known.get(each) or _Partition(now) for each in partitions}

    def opened(self, partitions: Iterable[int], next_offsets: Mapping[int, int]) -> None:
        """Store that these partitions are open for reading, each from its offset in `next_offsets` on."""
        now = time.monotonic()
        for number in partitions:
            each = self._partition(number)
            each.reading, each.ready_at, each.answered_at = True, now, 0
            each.next_offset = next_offsets[number]

    def closed(self, partitions: Iterable[int]) -> None:
        """Store that these partitions are not open for reading any more."""
        for number in partitions:
            self._partition(number).reading = False

    def taken(self, lane: Iterable[int], first_offsets: Mapping[int, int]) -> None:
        """Store that the lane of these partitions begins a batch. `first_offsets` gives the batch's first offset in each partition."""
        now = time.monotonic()
        for number in lane:
            each = self._partition(number)
            each.busy_since, each.in_hand = now, first_offsets.get(number)
            each.lane, each.stepped_at = tuple(lane), now

    def stepped(self, partitions: Iterable[int]) -> None:
        """Store that the batches of these partitions' lanes made progress."""
        now = time.monotonic()
        for lane in {self._partition(number).lane for number in partitions}:
            for number in lane:
                self._partition(number).stepped_at = now

    def done(self, lane: Iterable[int]) -> None:
        """Store that the batch of this lane ended, by success or failure."""
        now = time.monotonic()
        for number in lane:
            each = self._partition(number)
            each.busy_since = each.in_hand = None
            each.ready_at = each.free_at = now

    def moved(self, next_offsets: Mapping[int, int]) -> None:
        """Store that all messages before these offsets, by partition, are handled and committed."""
        now = time.monotonic()
        for number, offset in next_offsets.items():
            each = self._partition(number)
            each.next_offset, each.served_at = offset, now
        self.probes.moved(next_offsets)

    def heard(self, partition: int, end_offset: int, *, unread: int, answered_at: int) -> bool:
        """Store Kafka's answer for a partition, given at `answered_at` in milliseconds since 1970.

        Return whether the answer is new and nothing was unread.
        """
        each = self._partition(partition)
        each.end_offset = end_offset or each.end_offset
        if unread or answered_at <= each.answered_at:
            return False
        each.served_at, each.answered_at = time.monotonic(), answered_at
        return True

    def unheard(self, lane: Iterable[int]) -> list[int]:
        """Return the partitions of a lane that neither progressed nor had an answer of Kafka for `STALLED_AFTER_SECONDS`."""
        now = time.monotonic()
        these = [(number, self._partition(number)) for number in lane]
        return [
            number
            for number, each in these
            if now - max(each.served_at, each.ready_at) > STALLED_AFTER_SECONDS
        ]

    def longest_stall_seconds(self) -> float:
        """Return the longest time, in seconds, for which a partition made no progress. Partitions with a batch in work do not count."""
        now = time.monotonic()
        idle = (each for each in self._partitions.values() if each.busy_since is None)
        return max((now - max(each.served_at, each.free_at) for each in idle), default=0.0)

    def longest_batch_seconds(self) -> float:
        """Return for how many seconds the oldest batch has been handled so far; 0 if there is none."""
        now = time.monotonic()
        since = (each.busy_since for each in self._partitions.values() if each.busy_since is not None)
        return max((now - each for each in since), default=0.0)

    def health(self) -> list[PartitionHealth]:
        """Return the state of each assigned partition, by number."""
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
