"""Gaps: ranges of a log that a consumer did not handle. They are named by status and audit until an operator has looked at them.

Messages were deleted before they were read, or the topic was made anew. Or the messages were sent to a state of the database that a restore has
undone: these are kept aside as dead letters, which are replayed (taken in) or dropped by an operator.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeAlias

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.dead_letter import BEGINNING_BYTES
from wms.db.offset import ConsumedTopic
from wms.db.sql import load

SQL = load(__file__)

Cause: TypeAlias = Literal["deleted", "begun anew", "restored"]
PAGE_LIMIT = 200
"""How many gaps `page` returns at most."""


class LogGap(msgspec.Struct, frozen=True, kw_only=True):
    """A range of offsets in one partition that a consumer does not handle."""

    partition: int
    cause: Cause
    first_offset: int
    until_offset: int | None
    """The offset after the last message of the range; None if unknown, because the log begins again."""
    goes_on_at: datetime | None = None
    """When the first message behind the range was sent; None if there is none yet."""


class RestoredRange(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of one partition that are kept aside: those before `until_offset`."""

    log_gap_id: int
    until_offset: int
    handled_at: datetime | None
    """When the consumer had handled all messages before the range; None if it had read none."""


async def record(tx: Transaction, feed: ConsumedTopic, gap: LogGap) -> None:
    """Store a gap of a consumer, with the time when its offset last moved. If it is stored already, nothing changes."""
    await tx.execute(
        SQL["record"],
        feed.cluster_id,
        feed.consumer,
        feed.topic,
        gap.partition,
        gap.cause,
        gap.first_offset,
        gap.until_offset,
        gap.goes_on_at,
    )


async def restored(
    tx: Transaction, feed: ConsumedTopic, partitions: Sequence[int]
) -> dict[int, RestoredRange]:
    """Return, by partition, the ranges whose messages the consumer must keep aside and has not passed yet."""
    rows = await tx.fetch(SQL["restored"], feed.cluster_id, feed.consumer, feed.topic, partitions)
    return {
        row["partition"]: RestoredRange(
            log_gap_id=row["log_gap_id"], until_offset=row["until_offset"], handled_at=row["handled_at"]
        )
        for row in sorted(rows, key=lambda row: int(row["until_offset"]))
    }


async def page(tx: Transaction, *, acknowledged: bool = False) -> list[asyncpg.Record]:
    """Return the newest gaps, and how many messages are kept aside for each; with `acknowledged` also those that operators have looked at."""
    return await tx.fetch(SQL["page"], PAGE_LIMIT, acknowledged)


async def kept(tx: Transaction, log_gap_ids: Sequence[int]) -> list[asyncpg.Record]:
    """Return the messages that were kept aside for these gaps, in their order, each with the beginning of its payload."""
    return await tx.fetch(SQL["kept"], log_gap_ids, BEGINNING_BYTES)


async def undecided(tx: Transaction, log_gap_ids: Sequence[int], sender: str = "") -> list[int]:
    """Return the ids of the dead letters of these gaps that are neither taken in nor dropped; those of `sender`, or of all if it is empty."""
    return [row["dead_letter_id"] for row in await tx.fetch(SQL["undecided"], log_gap_ids, sender)]


async def unacknowledged(tx: Transaction, log_gap_ids: Sequence[int]) -> list[int]:
    """Return those of these ids that are of gaps at which no operator has looked."""
    return [row["log_gap_id"] for row in await tx.fetch(SQL["unacknowledged"], log_gap_ids)]


async def acknowledge(tx: Transaction, log_gap_ids: Sequence[int]) -> list[int]:
    """Store that an operator has looked at these gaps. Return the ids of those that were changed.

    A gap is not changed while some of its messages are yet to be read, taken in or dropped.
    """
    return [row["log_gap_id"] for row in await tx.fetch(SQL["acknowledge"], log_gap_ids)]
