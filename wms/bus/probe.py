"""Probes: tiny messages that a service sends into its own partitions to check that they are served.

A probe takes the same path as other messages, except for the handler: broker, reader, batch, transaction, offset. Its payload is a random number,
which others cannot know before it is sent. Other messages that look like probes prove nothing and are skipped. They cost as much as any unreadable
message.
"""

import secrets
import time
import zlib
from collections.abc import Iterable, Mapping

import msgspec

from wms.bounded_cache import BoundedCache
from wms.bus.reader import Message

PROBE_SECONDS = 3.0
"""How often, in seconds, a probe is sent into each partition."""
UNSERVED_AFTER_SECONDS = 10.0
"""A partition counts as not served if no probe came back for this many seconds."""

_KEY = b"wms.probe."
_PAYLOAD = b"wms.probe "
_SIZE = len(_PAYLOAD) + 32
_OUTSTANDING = 8
"""The largest number of unread probes that are remembered for a partition. In a partition that is not served, older ones do not matter."""


class ProbeHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the probes of one partition: whether they come back, and how fast."""

    partition: int
    round_trip_ms: float | None
    """The round trip, in milliseconds, of the probe that came back last; None if none did yet."""
    silent_seconds: float
    """Seconds since a probe last came back, or since the partition was assigned."""

    @property
    def is_served(self) -> bool:
        """Whether a probe came back within the last `UNSERVED_AFTER_SECONDS`."""
        return self.silent_seconds <= UNSERVED_AFTER_SECONDS


class ConsumerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the probes in all partitions that one instance of a service reads for one consumer."""

    topic: str
    partitions: int
    """How many partitions the topic has, including those that other instances read."""
    probes: tuple[ProbeHealth, ...] = ()
    """The results of the probes, for each partition that this instance reads."""
    passed: int = 0
    """How many probes of this instance came back. Counts of handled messages include them."""


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
    """The probes of one consumer: those that were sent and have not come back, and the round trips of the others."""

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
            payloads.append(new_probe())
            each.sent[payloads[-1]] = now
        return keys, payloads

    def recognise(self, record: Message) -> bool:
        """Return whether a record is a probe, whoever sent it. One of our own counts as returned once `moved` passes its offset."""
        if not is_probe(record):
            return False
        each = self._partitions.get(record.partition)
        if each is not None and (sent_at := each.sent.pop(record.payload, None)) is not None:
            each.read[record.offset] = sent_at
        return True

    def moved(self, next_offsets: Mapping[int, int]) -> None:
        """Record that all messages before these offsets, by partition, are handled and committed. Our probes among them count as returned."""
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
        """Return the results of the probes of each partition that was last probed. `partitions` is the topic's number of partitions."""
        now = time.monotonic()
        probes = [
            ProbeHealth(
                partition=number, round_trip_ms=each.round_trip_ms, silent_seconds=round(now - each.since, 1)
            )
            for number, each in sorted(self._partitions.items())
        ]
        return ConsumerHealth(topic=topic, partitions=partitions, probes=tuple(probes), passed=self.passed)


def new_probe() -> bytes:
    """Return the payload of a new probe, which every consumer passes over."""
    return _PAYLOAD + secrets.token_hex(16).encode()


def is_probe(record: Message) -> bool:
    """Return whether a record has the form of a probe. No other message has it, since a probe is not JSON."""
    return len(record.payload) == _SIZE and record.payload.startswith(_PAYLOAD)


def _key(partition: int, count: int) -> bytes:
    """Return a key that Kafka's partitioner maps to `partition`, of `count` partitions."""
    number = 0
    while zlib.crc32(key := b"%s%d" % (_KEY, number)) % count != partition:
        number += 1
    return key
