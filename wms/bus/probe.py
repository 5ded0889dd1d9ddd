"""Probes: tiny messages that a service sends into its own partitions, to see that what is sent there is handled.

A probe passes through everything that a message passes through but the handler: broker, reader, batch, transaction, offset. It carries a
number that only its sender knows until it is sent. Others' messages that look like probes are passed over: they prove nothing,
and cost as much as any message that cannot be read.
"""

import secrets
import time
import zlib
from collections.abc import Iterable, Mapping

import msgspec

from wms.bounded_cache import BoundedCache
from wms.bus.reader import Message

PROBE_SECONDS = 3.0
"""Between two probes into one partition."""
UNSERVED_AFTER_SECONDS = 10.0
"""A partition is not served when for so long no probe has passed through it."""

_KEY = b"wms.probe."
_PAYLOAD = b"wms.probe "
_SIZE = len(_PAYLOAD) + 32
_OUTSTANDING = 8
"""At most so many probes of a partition are remembered; of one that is not served the older ones no longer matter."""


class ProbeHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How probes fare in one partition."""

    partition: int
    round_trip_ms: float | None
    """Of the last that came back; None if none did yet."""
    silent_seconds: float
    """Since one came back, or since the partition was assigned."""

    @property
    def is_served(self) -> bool:
        """Whether one has come back in time."""
        return self.silent_seconds <= UNSERVED_AFTER_SECONDS


class ConsumerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What one instance tells of one of its consumers."""

    topic: str
    partitions: int
    """Of the topic, whoever they are assigned to."""
    probes: tuple[ProbeHealth, ...] = ()
    """Of those that are this instance's."""
    passed: int = 0
    """Probes of this instance that came back, which count as handled."""


class _Partition(msgspec.Struct):
    since: float
    """When a probe came back last, or the partition was assigned."""
    round_trip_ms: float | None = None
    sent: BoundedCache[bytes, float] = msgspec.field(
        default_factory=lambda: BoundedCache[bytes, float](_OUTSTANDING)
    )
    """By payload, when each was sent that is on its way."""
    read: dict[int, float] = {}
    """By offset, when each was sent that was read and is not committed yet."""


class Probes:
    """The probes of one consumer."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self.passed = 0

    def prepare(self, assigned: Iterable[int], count: int) -> tuple[list[bytes], list[bytes]]:
        """Return keys and payloads of a probe for each assigned partition of `count`, about to be sent."""
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
        """Tell whether a record is a probe, whoever sent it; one of ours passes when the offset behind it is committed."""
        if not is_probe(record):
            return False
        each = self._partitions.get(record.partition)
        if each is not None and (sent_at := each.sent.pop(record.payload, None)) is not None:
            each.read[record.offset] = sent_at
        return True

    def moved(self, next_offsets: Mapping[int, int]) -> None:
        """All before these offsets is committed."""
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
        """Return how probes fare in each partition of a topic that was assigned at the last sending."""
        now = time.monotonic()
        probes = [
            ProbeHealth(
                partition=number, round_trip_ms=each.round_trip_ms, silent_seconds=round(now - each.since, 1)
            )
            for number, each in sorted(self._partitions.items())
        ]
        return ConsumerHealth(topic=topic, partitions=partitions, probes=tuple(probes), passed=self.passed)


def is_probe(record: Message) -> bool:
    """Tell whether a record looks like a probe, of whomever. No message does: this is no JSON."""
    return len(record.payload) == _SIZE and record.payload.startswith(_PAYLOAD)


def _key(partition: int, count: int) -> bytes:
    """Return a key that brings a message into that partition."""
    number = 0
    while zlib.crc32(key := b"%s%d" % (_KEY, number)) % count != partition:
        number += 1
    return key
