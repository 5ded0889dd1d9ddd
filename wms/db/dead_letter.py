"""Dead letters in the database: messages that could not be handled, stored for operators with the verified identity of the sender."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.offset import ConsumedTopic
from wms.db.sql import load
from wms.errors import shown

SQL = load(__file__)

UNVERIFIED_BYTES = 65_536
"""How many bytes are kept of a message whose sender was not verified. Such a message is never replayed."""
BEGINNING_BYTES = 4_096
"""How many bytes of each payload `page` returns, from its start."""
SENDER_PART = 8
"""The letters of one sender, or of all unverified senders together, may fill one part in this many of the total room."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """One message that could not be handled: its partition and offset, its content, its sender, and the error."""

    partition: int
    offset: int
    key: bytes | None
    payload: bytes
    principal: str | None
    """The verified sender as JSON; None if the sender could not be verified."""
    error: str
    sent_at: datetime | None = None
    """When the message was sent, by its sender's clock."""
    log_gap_id: int | None = None
    """The gap for which the message is kept aside (`wms.db.log_gap`); None if it failed."""


class LetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """The criteria of one page of dead letters, which are listed newest first."""

    limit: int = 50
    before: int | None = None
    """Only letters with ids below this one are returned; None: the page starts at the newest."""
    replayed: bool = False
    """Whether letters that were replayed successfully are returned too."""
    consumer: str = ""
    """The consumer whose letters are returned; empty: all consumers."""


class LetterRoom(msgspec.Struct, frozen=True, kw_only=True):
    """How many dead letters, and how many bytes of payloads, are kept in all."""

    letters: int
    bytes: int


async def bury(tx: Transaction, feed: ConsumedTopic, letter: DeadLetter) -> None:
    """Store a dead letter of the consumer and topic that `feed` names. If that message is stored already, nothing changes."""
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
        letter.sent_at,
        letter.log_gap_id,
    )


async def page(tx: Transaction, wanted: LetterPage) -> list[asyncpg.Record]:
    """Return one page of dead letters, newest first, each with its size in bytes and the beginning of its payload."""
    return await tx.fetch(
        SQL["page"], wanted.limit, wanted.before, wanted.replayed, wanted.consumer, BEGINNING_BYTES
    )


async def whole(tx: Transaction, ids: Sequence[int]) -> list[asyncpg.Record]:
    """Return the dead letters with these ids, with their payloads as stored. Unknown ids are absent."""
    return await tx.fetch(SQL["whole"], ids)


async def lock(tx: Transaction, ids: Sequence[int], *, unreplayed: bool) -> set[int]:
    """Lock the dead letters with these ids until the transaction ends. Return the ids of the locked ones.

    With `unreplayed`, letters that were replayed already are left out.
    """
    return {row["dead_letter_id"] for row in await tx.fetch(SQL["lock"], ids, unreplayed)}


async def ask_replay(tx: Transaction, ids: Sequence[int]) -> list[int]:
    """Mark the dead letters with these ids for replay by their consumers. Return the ids of those that were marked."""
    return [row["dead_letter_id"] for row in await tx.fetch(SQL["ask_replay"], ids)]


async def to_replay(tx: Transaction, consumer: str) -> asyncpg.Record | None:
    """Lock and return one dead letter of this consumer that is marked for replay; None if there is none."""
    return await tx.fetchrow(SQL["to_replay"], consumer)


async def replayed(tx: Transaction, dead_letter_id: int) -> None:
    """Store that a dead letter was replayed successfully."""
    await tx.execute(SQL["replayed"], dead_letter_id)


async def replay_failed(tx: Transaction, dead_letter_id: int, error: str) -> None:
    """Store that the replay of a dead letter failed, and the text of the error."""
    await tx.execute(SQL["replay_failed"], dead_letter_id, shown(error))


async def drop(tx: Transaction, ids: Sequence[int]) -> dict[int, str]:
    """Delete the dead letters with these ids; return a one-line summary of each deleted letter, by id."""
    return {row["dead_letter_id"]: row["summary"] for row in await tx.fetch(SQL["drop"], ids)}


async def forget(tx: Transaction, age: float) -> int:
    """Delete dead letters that arrived more than `age` seconds ago; return their number. Those of gaps stay until an operator decides."""
    return await tx.execute(SQL["forget"], age)


async def bound(tx: Transaction, room: LetterRoom) -> int:
    """Delete the oldest dead letters beyond the total room, or beyond one sender's share of it. Return the number of deleted letters.

    Messages that are kept aside for a gap are neither counted nor deleted.
    """
    part = max(room.letters // SENDER_PART, 1), room.bytes // SENDER_PART
    of_senders = await tx.execute(SQL["bound_senders"], *part)
    return of_senders + await tx.execute(SQL["bound_all"], room.letters, room.bytes)
