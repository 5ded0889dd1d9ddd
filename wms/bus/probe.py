"""Probes: tiny messages that a service sends into its own partitions to check that they are served.

A probe takes the path of all messages except the handler: broker, reader, batch, transaction, offset. It carries a random number that
only its sender knows before it is sent. Other messages that look like probes are skipped. They prove nothing, and cost as much as any
unreadable message.
"""

import secrets
import time
import zlib
from collections.abc import Iterable, Mapping

import msgspec

from wms.bounded_cache import BoundedCache
from wms.bus.reader import Message

PROBE_SECONDS = 3.0
"""Seconds between two probes into one partition."""
UNSERVED_AFTER_SECONDS = 10.0
"""After so many seconds without a probe that came back, a partition counts as not served."""

_KEY = b"wms.probe."
_PAYLOAD = b"wms.probe "
_SIZE = len(_PAYLOAD) + 32
_OUTSTANDING = 8
"""How many probes are remembered for a partition. Older ones of an unserved partition do not matter."""


class ProbeHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How the probes of one partition fare: whether they come back, and how fast."""

    partition: int
    round_trip_ms: float | None
    """How many milliseconds the last probe took that came back; None before the first."""
    silent_seconds: float
    """Seconds since a probe last came back, or since the partition was assigned."""

    @property
    def is_served(self) -> bool:
        """Whether a probe came back within the last `UNSERVED_AFTER_SECONDS`."""
        return self.silent_seconds <= UNSERVED_AFTER_SECONDS


class ConsumerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How the probes fare in all partitions that one consumer reads in one service instance."""

    topic: str
    partitions: int
    """How many partitions the topic has, those of other instances included."""
    probes: tuple[ProbeHealth, ...] = ()
    """How the probes fare in each partition of this instance."""
    passed: int = 0
    """How many probes of this instance came back. They count as handled messages elsewhere."""


class _Partition(msgspec.Struct):
    since: float
    """Monotonic seconds when the last probe returned, or the partition was assigned."""
    round_trip_ms: float | None = None
    sent: BoundedCache[bytes, float] = msgspec.field(
        default_factory=lambda: BoundedCache[bytes, float](_OUTSTANDING)
    )
    """Send times of probes that are not read yet, in monotonic seconds, by payload."""
    read: dict[int, float] = {}
    """Send times of probes that are read but not committed yet, in monotonic seconds, by offset."""


class Probes:
    """The probes of one consumer: those that are out, and how long those took that came back."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self.passed = 0

    def prepare(self, assigned: Iterable[int], count: int) -> tuple[list[bytes], list[bytes]]:
        """Return the keys and payloads of new probes to send, one for each assigned partition. The topic has `count` partitions."""
        now = time.monotonic()
        known = self._partitions
        self._partitions = {number: known.get(number) or _Partition(now) for number in assigned}
        keys, payloads = [], []
        for number, each in self._partitions.items():
            keys.append(_key(number, count))
            payloads.append(_PAYLOAD + secrets.token_hex(16).encode())
            each.sent[payloads[-1]] = now
        return keys, payloads

    def recognise(self, record: Message) -> bool:
        """Return whether a record is a probe, whoever sent it. One of our own is remembered until `moved` reports its offset."""
        if not is_probe(record):
            return False
        each = self._partitions.get(record.partition)
        if each is not None and (sent_at := each.sent.pop(record.payload, None)) is not None:
            each.read[record.offset] = sent_at
        return True

    def moved(self, next_offsets: Mapping[int, int]) -> None:
        """Store that all messages before these offsets, by partition, are handled and committed. Probes among them came back."""
        now = time.monotonic()
        for number, offset in next_offsets.items():
            each = self._partitions.get(number)
            if each is None:
                continue
            for at in [at for at in each.read if at < offset]:
                each.round_trip_ms = round((now - each.read.pop(at)) * 1_000, 1)
                each.since = now
                self.passed += 1

    def health(self, topic: str, partitions: int) -> ConsumerHealth:
        """Return how the probes fare in each partition to which the last were sent. `partitions` is the number of the topic's."""
        now = time.monotonic()
        probes = [
            ProbeHealth(
                partition=number, round_trip_ms=each.round_trip_ms, silent_seconds=round(now - each.since, 1)
            )
            for number, each in sorted(self._partitions.items())
        ]
        return ConsumerHealth(topic=topic, partitions=partitions, probes=tuple(probes), passed=self.passed)


def is_probe(record: Message) -> bool:
    """Return whether a record has the form of a probe. No other message has it, since a probe is not JSON."""
    return len(record.payload) == _SIZE and record.payload.startswith(_PAYLOAD)


def _key(partition: int, count: int) -> bytes:
    """Return a key that Kafka's partitioner maps to `partition`, of `count` partitions."""
    number = 0
    while zlib.crc32(key := b"%s%d" % (_KEY, number)) % count != partition:
        number += 1
    return key
