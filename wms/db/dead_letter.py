"""Dead letters: messages that could not be handled, with the identity that was verified at their arrival."""

from collections.abc import Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.offset import Feed
from wms.db.sql import load
from wms.errors import shown

SQL = load(__file__)

UNVERIFIED_BYTES = 65_536
"""The most bytes kept of an unverified sender's message: it is never replayed, and anybody may send one."""
BEGINNING_BYTES = 4_096
SENDER_PART = 8
"""The letters of one sender, or of all unverified ones, get this fraction of the room."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """One message that could not be handled, and why."""

    partition: int
    offset: int
    key: bytes | None
    payload: bytes
    principal: str | None
    """JSON, or None where the sender could not be verified."""
    error: str


class LetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """The criteria of a list of letters, newest first."""

    limit: int = 50
    before: int | None = None
    """Only letters with lower numbers."""
    replayed: bool = False
    """Also letters whose replay succeeded."""
    consumer: str = ""
    """Only letters of this consumer."""


class LetterRoom(msgspec.Struct, frozen=True, kw_only=True):
    """The room for all dead letters together."""

    letters: int
    bytes: int


async def bury(tx: Transaction, feed: Feed, letter: DeadLetter) -> None:
    """Store the letter."""
    most = UNVERIFIED_BYTES if letter.principal is None else 1_000_000
    await tx.execute(
        SQL["bury"],
        feed.consumer,
        feed.cluster_id,
        feed.topic,
        letter.partition,
        letter.offset,
        letter.key,
        letter.payload[:most],
        letter.principal,
        shown(letter.error),
    )


async def page(tx: Transaction, wanted: LetterPage) -> list[asyncpg.Record]:
    """Return dead letters, newest first, each with its size and the first bytes of its payload."""
    return await tx.fetch(
        SQL["page"], wanted.limit, wanted.before, wanted.replayed, wanted.consumer, BEGINNING_BYTES
    )


async def whole(tx: Transaction, ids: Sequence[int]) -> list[asyncpg.Record]:
    """Return these letters with their payloads."""
    return await tx.fetch(SQL["whole"], ids)


async def ask_replay(tx: Transaction, ids: Sequence[int]) -> list[int]:
    """Mark these letters for replay; return those that can be."""
    return [row["dead_letter_id"] for row in await tx.fetch(SQL["ask_replay"], ids)]


async def to_replay(tx: Transaction, consumer: str) -> asyncpg.Record | None:
    """Return a letter of this consumer that is marked for replay, locked, or None."""
    return await tx.fetchrow(SQL["to_replay"], consumer)


async def replayed(tx: Transaction, dead_letter_id: int) -> None:
    """Store that the replay succeeded."""
    await tx.execute(SQL["replayed"], dead_letter_id)


async def replay_failed(tx: Transaction, dead_letter_id: int, error: str) -> None:
    """Store that the replay failed."""
    await tx.execute(SQL["replay_failed"], dead_letter_id, shown(error))


async def drop(tx: Transaction, ids: Sequence[int]) -> dict[int, str]:
    """Delete these letters; return a line on each."""
    return {row["dead_letter_id"]: row["summary"] for row in await tx.fetch(SQL["drop"], ids)}


async def forget(tx: Transaction, age: float) -> int:
    """Delete letters that came so many seconds ago; return how many."""
    return await tx.execute(SQL["forget"], age)


async def bound(tx: Transaction, room: LetterRoom) -> int:
    """Delete the oldest letters beyond the room, or beyond one sender's part of it; return how many."""
    part = max(room.letters // SENDER_PART, 1), room.bytes // SENDER_PART
    of_senders = await tx.execute(SQL["bound_senders"], *part)
    return of_senders + await tx.execute(SQL["bound_all"], room.letters, room.bytes)
