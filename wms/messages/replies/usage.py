"""Answers about usage: the resources that ended attempts used, and the part used by attempts that did not succeed."""

from typing import Annotated

import msgspec

from wms.bounds import Bytes, Client, MessageId, Seconds, StoredName, Total, Word
from wms.messages.replies.bounds import Many, Position


class WasteLine(msgspec.Struct, frozen=True, kw_only=True):
    """The slot seconds of attempts that failed for one reason."""

    reason: StoredName
    slot_seconds: Seconds


class UsageLine(msgspec.Struct, frozen=True, kw_only=True):
    """The summed usage of ended attempts that have the same key."""

    key: Annotated[tuple[StoredName, ...], Many]
    """The values of the properties in the query's `by`, in the same order. Months and days are in UTC, such as `2026-11`."""
    attempts: Total
    done: Total
    """The number of attempts whose payload succeeded."""
    cpu_seconds: Seconds
    wall_seconds: Seconds
    slot_seconds: Seconds
    """Wall seconds times the number of processors that the job asked for, summed over the attempts."""
    mean_rss_bytes: Bytes
    """The mean of the attempts' largest resident memory in bytes, weighted by wall time."""
    max_rss_bytes: Bytes
    waste: Annotated[tuple[WasteLine, ...], Many] = ()
    """The slot seconds of attempts that did not succeed, by reason, the largest first."""

    @property
    def wasted_seconds(self) -> float:
        """The slot seconds of all attempts that did not succeed."""
        return sum(each.slot_seconds for each in self.waste)

    @property
    def efficiency(self) -> float | None:
        """CPU seconds divided by slot seconds; None if there are no slot seconds."""
        return self.cpu_seconds / self.slot_seconds if self.slot_seconds else None


class UsageReport(msgspec.Struct, frozen=True, kw_only=True, tag="usage-report"):
    """Answers ShowUsage: a page of usage sums, the largest first."""

    query_id: MessageId
    client: Client
    by: Annotated[tuple[Word, ...], Many]
    lines: Annotated[tuple[UsageLine, ...], Many]
    after: Position | None = None
    """The `after` of the query for the next page. None on the last page."""
