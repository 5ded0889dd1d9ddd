"""The progress of a consumer by partition: the broker's last answer, the current batch, and the last advance."""

import time
from collections.abc import Iterable, Mapping

import msgspec

from wms.bus.probe import Probes

STALLED_AFTER_SECONDS = 8.0
"""A partition that was not served for so long is stalled. A healthy one is served several times a second."""


class PartitionHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one assigned partition, as the heartbeat reports it."""

    partition: int
    reading: bool
    """Whether a reader is open for it."""
    next_offset: int | None
    """The next message to handle; None before the first reading."""
    end_offset: int | None
    """The end of the log by the broker's last answer."""
    served_seconds_ago: float
    """Since a batch of it was committed, or the broker reported that nothing is unread."""
    in_hand_offset: int | None = None
    """Its first message in the current batch, which blocks it if the batch is old."""
    busy_seconds: float = 0.0
    """Age of its lane's current batch."""
    step_seconds_ago: float = 0.0
    """Since the last step of that batch: a message prepared, a statement done."""
    stalled: bool = False
    """Whether it was not served for STALLED_AFTER_SECONDS."""

    @property
    def lag(self) -> int:
        """Messages that are not handled yet, as far as is known."""
        return max(0, (self.end_offset or 0) - (self.next_offset or 0))


class _Partition(msgspec.Struct):
    served_at: float
    ready_at: float = 0.0
    """When its lane last became ready to read: a reader was opened, or a batch ended."""
    free_at: float = 0.0
    """When its lane's last batch ended."""
    reading: bool = False
    next_offset: int | None = None
    end_offset: int | None = None
    in_hand: int | None = None
    busy_since: float | None = None
    """When the current batch of its lane began, of any of the lane's partitions."""
    lane: tuple[int, ...] = ()
    """The partitions that wait for this batch."""
    stepped_at: float = 0.0
    """When this batch last made a step."""
    answered_at: int = 0


class ConsumerProgress:
    """The progress of all partitions of one consumer; it is kept while no reader is open."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self.probes = Probes()

    def assign(self, partitions: Iterable[int]) -> None:
        """Follow exactly these partitions from now on; known progress stays."""
        now = time.monotonic()
        known = self._partitions
        self._partitions = {each: known.get(each) or _Partition(now) for each in partitions}

    def opened(self, partitions: Iterable[int], next_offsets: Mapping[int, int]) -> None:
        """Note that a reader is open for these partitions."""
        now = time.monotonic()
        for number in partitions:
            each = self._partition(number)
            each.reading, each.ready_at, each.answered_at = True, now, 0
            each.next_offset = next_offsets[number]

    def closed(self, partitions: Iterable[int]) -> None:
        """Note that no reader is open for these partitions."""
        for number in partitions:
            self._partition(number).reading = False

    def taken(self, lane: Iterable[int], first_offsets: Mapping[int, int]) -> None:
        """Note that the lane of these partitions has begun a batch with these first offsets."""
        now = time.monotonic()
        for number in lane:
            each = self._partition(number)
            each.busy_since, each.in_hand = now, first_offsets.get(number)
            each.lane, each.stepped_at = tuple(lane), now

    def stepped(self, partitions: Iterable[int]) -> None:
        """Note a step of the current batch of these partitions' lane."""
        now = time.monotonic()
        for lane in {self._partition(number).lane for number in partitions}:
            for number in lane:
                self._partition(number).stepped_at = now

    def done(self, lane: Iterable[int]) -> None:
        """Note that the current batch has ended, whether it succeeded or not."""
        now = time.monotonic()
        for number in lane:
            each = self._partition(number)
            each.busy_since = each.in_hand = None
            each.ready_at = each.free_at = now

    def moved(self, next_offsets: Mapping[int, int]) -> None:
        """Note that all messages before these offsets are committed."""
        now = time.monotonic()
        for number, offset in next_offsets.items():
            each = self._partition(number)
            each.next_offset, each.served_at = offset, now
        self.probes.moved(next_offsets)

    def heard(self, partition: int, end_offset: int, *, unread: int, answered_at: int) -> bool:
        """Take the broker's answer of time `answered_at` in ms; return whether it newly reports that nothing is unread."""
        each = self._partition(partition)
        each.end_offset = end_offset or each.end_offset
        if unread or answered_at <= each.answered_at:
            return False
        each.served_at, each.answered_at = time.monotonic(), answered_at
        return True

    def unheard(self, lane: Iterable[int]) -> list[int]:
        """Return the partitions of a ready lane of which nothing was heard for too long."""
        now = time.monotonic()
        these = [(number, self._partition(number)) for number in lane]
        return [
            number
            for number, each in these
            if now - max(each.served_at, each.ready_at) > STALLED_AFTER_SECONDS
        ]

    def longest_stall_seconds(self) -> float:
        """Return for how long the partition that waits longest was not served while its lane has no batch."""
        now = time.monotonic()
        idle = (each for each in self._partitions.values() if each.busy_since is None)
        return max((now - max(each.served_at, each.free_at) for each in idle), default=0.0)

    def longest_batch_seconds(self) -> float:
        """Return the age of the oldest current batch."""
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
