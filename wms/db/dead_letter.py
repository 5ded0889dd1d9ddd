"""Dead letters: messages that could not be handled, kept with the identity that was verified when they came."""

from collections.abc import Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.offset import Feed
from wms.db.sql import load
from wms.errors import shown

SQL = load(__file__)


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """One message that could not be handled, and why."""

    partition: int
    offset: int
    key: bytes | None
    payload: bytes
    principal: str | None
    """JSON, or None where the sender could not be verified."""
    error: str


async def bury(tx: Transaction, feed: Feed, letter: DeadLetter) -> None:
    """Keep the letter."""
    await tx.execute(
        SQL["bury"],
        feed.consumer,
        feed.cluster_id,
        feed.topic,
        letter.partition,
        letter.offset,
        letter.key,
        letter.payload[:1_000_000],
        letter.principal,
        shown(letter.error),
    )


async def letters(tx: Transaction, limit: int, *, replayed: bool = False) -> list[asyncpg.Record]:
    """Return dead letters, newest first."""
    return await tx.fetch(SQL["all"], limit, replayed)


async def ask_replay(tx: Transaction, ids: Sequence[int], *, everything: bool = False) -> int:
    """Ask for these to be tried again; return how many will be."""
    return await tx.execute(SQL["ask_replay"], ids, everything)


async def to_replay(tx: Transaction, consumer: str) -> asyncpg.Record | None:
    """Return a letter of this consumer to be tried again, locked, or None."""
    return await tx.fetchrow(SQL["to_replay"], consumer)


async def replayed(tx: Transaction, dead_letter_id: int) -> None:
    """Write that it worked."""
    await tx.execute(SQL["replayed"], dead_letter_id)


async def replay_failed(tx: Transaction, dead_letter_id: int, error: str) -> None:
    """Write that it did not."""
    await tx.execute(SQL["replay_failed"], dead_letter_id, shown(error))
