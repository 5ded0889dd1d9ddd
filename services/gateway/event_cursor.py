"""The position of a reader in the topic of job events, written as the id of a server-sent event: the next offset of each partition.

The offsets are Kafka's, so a client can continue at any gateway. They are valid for one Kafka cluster only, so the id contains a digest of
the cluster's id.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Protocol

import msgspec

from wms.messages.events import LANES

_FORM = re.compile(rf"([0-9a-f]{{8}})((?:-[0-9]{{1,18}}){{{LANES}}})")


class PositionedRecord(Protocol):
    """A record with its position in a topic: partition and offset."""

    @property
    def partition(self) -> int:
        """The number of the record's partition."""

    @property
    def offset(self) -> int:
        """The record's offset in its partition."""


class EventCursor(msgspec.Struct, frozen=True):
    """A position in the topic of job events: for each partition, by its number, the offset of the next record."""

    cluster: str
    """The digest, by `mark_of`, of the id of the Kafka cluster for which the offsets are valid."""
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        return "-".join([self.cluster, *map(str, self.offsets)])

    def is_before(self, end: "EventCursor") -> bool:
        """Return whether this position is of the same cluster as `end` and in no partition after it. Equal positions count as before."""
        return self.cluster == end.cluster and all(
            mine <= last for mine, last in zip(self.offsets, end.offsets, strict=True)
        )

    def past(self, partition: int, offset: int) -> "EventCursor":
        """Return this position, moved in one partition to just after the record at `offset`."""
        offsets = list(self.offsets)
        offsets[partition] = offset + 1
        return EventCursor(self.cluster, tuple(offsets))

    def past_all(self, records: Iterable["PositionedRecord"]) -> "EventCursor":
        """Return this position, moved to just after these records, which are in ascending order in each partition."""
        offsets = list(self.offsets)
        for each in records:
            offsets[each.partition] = each.offset + 1
        return EventCursor(self.cluster, tuple(offsets))

    def back(self, records: int) -> "EventCursor":
        """Return the position that is `records` offsets earlier in each partition, but not below 0."""
        return EventCursor(self.cluster, tuple(max(0, each - records) for each in self.offsets))


def mark_of(cluster_id: str) -> str:
    """Return a digest of a Kafka cluster's id: eight hexadecimal digits."""
    return hashlib.sha256(cluster_id.encode()).hexdigest()[:8]


def cursor_of(text: str) -> EventCursor | None:
    """Return the position that the id of a server-sent event contains; None if the text is no such id."""
    found = _FORM.fullmatch(text)
    return EventCursor(found[1], tuple(map(int, found[2][1:].split("-")))) if found else None
