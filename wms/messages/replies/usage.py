"""Answers about usage: what ended attempts used, and what of it was wasted."""

from typing import Annotated

import msgspec

from wms.bounds import Bytes, Client, MessageId, Seconds, StoredName, Total, Word
from wms.messages.replies.bounds import Many, Position


class WasteLine(msgspec.Struct, frozen=True, kw_only=True):
    """The slot seconds of attempts that failed for one reason."""

    reason: StoredName
    slot_seconds: Seconds


class UsageLine(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of ended attempts that have the same key."""

    key: Annotated[tuple[StoredName, ...], Many]
    """The values of what the report is by, in its order; months and days in UTC, such as `2026-11`."""
    attempts: Total
    done: Total
    """The number of attempts whose payload succeeded."""
    cpu_seconds: Seconds
    wall_seconds: Seconds
    slot_seconds: Seconds
    """Wall seconds by the processors that the job asked for."""
    mean_rss_bytes: Bytes
    """The mean of the attempts' largest memory, weighted by wall time."""
    max_rss_bytes: Bytes
    waste: Annotated[tuple[WasteLine, ...], Many] = ()
    """Slot seconds of attempts that did not end well, by their reasons, the largest first."""

    @property
    def wasted_seconds(self) -> float:
        """The slot seconds of all attempts that did not end well."""
        return sum(each.slot_seconds for each in self.waste)

    @property
    def efficiency(self) -> float | None:
        """The CPU time by the slot time; None if no time was used."""
        return self.cpu_seconds / self.slot_seconds if self.slot_seconds else None


class UsageReport(msgspec.Struct, frozen=True, kw_only=True, tag="usage-report"):
    """Answers ShowUsage: a page of lines, what used the most first."""

    query_id: MessageId
    client: Client
    by: Annotated[tuple[Word, ...], Many]
    lines: Annotated[tuple[UsageLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""
