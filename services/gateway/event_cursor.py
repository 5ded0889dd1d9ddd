"""The position of a reader in the topic of job events, as the id of a server-sent event: the next offset of each partition.

Offsets are the broker's, so that any gateway can go on where another ended. They hold for one Kafka cluster, whose mark is
in the id.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Protocol

import msgspec

from wms.messages.events import LANES

_FORM = re.compile(rf"([0-9a-f]{{8}})((?:-[0-9]{{1,18}}){{{LANES}}})")


class Placed(Protocol):
    """What has a place in the topic."""

    @property
    def partition(self) -> int:
        """The partition."""

    @property
    def offset(self) -> int:
        """The offset in the partition."""


class EventCursor(msgspec.Struct, frozen=True):
    """A position in the topic of events: the offsets of the next records, by partition."""

    cluster: str
    """The mark of the Kafka cluster for which the offsets hold."""
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        return "-".join([self.cluster, *map(str, self.offsets)])

    def is_before(self, end: "EventCursor") -> bool:
        """Return whether the place is one of the same cluster, and in no partition behind that other one."""
        return self.cluster == end.cluster and all(
            mine <= last for mine, last in zip(self.offsets, end.offsets, strict=True)
        )

    def past(self, partition: int, offset: int) -> "EventCursor":
        """Return the position after the record at `offset` of a partition."""
        offsets = list(self.offsets)
        offsets[partition] = offset + 1
        return EventCursor(self.cluster, tuple(offsets))

    def past_all(self, records: Iterable["Placed"]) -> "EventCursor":
        """Return the place behind all of these records."""
        offsets = list(self.offsets)
        for each in records:
            offsets[each.partition] = each.offset + 1
        return EventCursor(self.cluster, tuple(offsets))

    def back(self, records: int) -> "EventCursor":
        """Return the position that is `records` records before, in each partition."""
        return EventCursor(self.cluster, tuple(max(0, each - records) for each in self.offsets))


def mark_of(cluster_id: str) -> str:
    """Return the mark of a Kafka cluster: eight hexadecimal digits."""
    return hashlib.sha256(cluster_id.encode()).hexdigest()[:8]


def cursor_of(text: str) -> EventCursor | None:
    """Return the position that an event's id contains; None if the text is no such id."""
    found = _FORM.fullmatch(text)
    return EventCursor(found[1], tuple(map(int, found[2][1:].split("-")))) if found else None
