"""Dead letters: messages that could not be handled, stored with the sender's identity as verified at their arrival."""

from collections.abc import Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.offset import Feed
from wms.db.sql import load
from wms.errors import shown

SQL = load(__file__)

UNVERIFIED_BYTES = 65_536
"""The most bytes kept of a message from an unverified sender. It is never replayed, and anybody may send one."""
BEGINNING_BYTES = 4_096
"""The bytes at the start of a payload that `page` returns."""
SENDER_PART = 8
"""The divisor of the room for the letters of one sender, or of all unverified senders together."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """One message that could not be handled, and the error."""

    partition: int
    offset: int
    key: bytes | None
    payload: bytes
    principal: str | None
    """The verified sender as JSON; None if the sender could not be verified."""
    error: str


class LetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """The criteria of one page of dead letters, newest first."""

    limit: int = 50
    before: int | None = None
    """An upper bound: only letters with lower ids are returned."""
    replayed: bool = False
    """Whether to include letters that were replayed successfully."""
    consumer: str = ""
    """The consumer whose letters are returned; empty: all consumers."""


class LetterRoom(msgspec.Struct, frozen=True, kw_only=True):
    """The most dead letters, and the most bytes of them, that are kept in total."""

    letters: int
    bytes: int


async def bury(tx: Transaction, feed: Feed, letter: DeadLetter) -> None:
    """Store a dead letter; a second one of the same message is ignored."""
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
    """Return one page of dead letters, each with its size in bytes and the beginning of its payload."""
    return await tx.fetch(
        SQL["page"], wanted.limit, wanted.before, wanted.replayed, wanted.consumer, BEGINNING_BYTES
    )


async def whole(tx: Transaction, ids: Sequence[int]) -> list[asyncpg.Record]:
    """Return the dead letters with these ids, with their stored payloads."""
    return await tx.fetch(SQL["whole"], ids)


async def ask_replay(tx: Transaction, ids: Sequence[int]) -> list[int]:
    """Mark the letters with these ids for replay; return the ids of those that were marked."""
    return [row["dead_letter_id"] for row in await tx.fetch(SQL["ask_replay"], ids)]


async def to_replay(tx: Transaction, consumer: str) -> asyncpg.Record | None:
    """Return one letter of this consumer that is marked for replay, and lock it; None if there is none."""
    return await tx.fetchrow(SQL["to_replay"], consumer)


async def replayed(tx: Transaction, dead_letter_id: int) -> None:
    """Store that the replay of a letter succeeded."""
    await tx.execute(SQL["replayed"], dead_letter_id)


async def replay_failed(tx: Transaction, dead_letter_id: int, error: str) -> None:
    """Store that the replay of a letter failed, with the error."""
    await tx.execute(SQL["replay_failed"], dead_letter_id, shown(error))


async def drop(tx: Transaction, ids: Sequence[int]) -> dict[int, str]:
    """Delete the letters with these ids; return a one-line summary of each deleted letter by id."""
    return {row["dead_letter_id"]: row["summary"] for row in await tx.fetch(SQL["drop"], ids)}


async def forget(tx: Transaction, age: float) -> int:
    """Delete letters that arrived more than `age` seconds ago; return the number of deleted letters."""
    return await tx.execute(SQL["forget"], age)


async def bound(tx: Transaction, room: LetterRoom) -> int:
    """Delete the oldest letters beyond the total room, or beyond one sender's share of it; return the number of deleted letters."""
    part = max(room.letters // SENDER_PART, 1), room.bytes // SENDER_PART
    of_senders = await tx.execute(SQL["bound_senders"], *part)
    return of_senders + await tx.execute(SQL["bound_all"], room.letters, room.bytes)
