"""Cuts lists into pages: as many entries as fit into one message, and where the next page begins."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

T = TypeVar("T")

REPLY_BYTES = 700_000
"""The most bytes of all entries of a page as JSON. Kafka accepts messages of a megabyte."""
CHUNK = 50
"""How many entries of a list are read from the database at a time."""

_encoder = msgspec.json.Encoder()


def fitting(entries: Iterable[T], room: int = REPLY_BYTES) -> list[T]:
    """Return as many of the first entries as take at most `room` bytes as JSON. The first is always included."""
    taken: list[T] = []
    for each in entries:
        room -= len(_encoder.encode(each)) + 1
        if room < 0 and taken:
            break
        taken.append(each)
    return taken


def page(entries: Sequence[T], after: int, limit: int) -> tuple[tuple[T, ...], int | None]:
    """Return the page of `entries` that begins at index `after`. It has at most `limit` entries, and as many as fit into one message.

    Also return the index at which the next page begins, or None on the last page.
    """
    taken = fitting(entries[after : after + limit])
    following = after + len(taken)
    return tuple(taken), following if following < len(entries) else None


async def read_page(
    read: Callable[[int, int], Awaitable[Sequence[T]]], after: int, limit: int
) -> tuple[tuple[T, ...], int | None]:
    """Read entries from the database in chunks, and return a page of them. Also return the index of the next page, or None on the last page.

    The page begins at index `after`, and has at most `limit` entries and `REPLY_BYTES` bytes. `read(after, limit)` returns at most `limit` entries
    from index `after` on, fewer only at the end of the list.
    """
    entries: list[T] = []
    while len(entries) < limit:
        size = min(CHUNK, limit - len(entries))
        more = await read(after + len(entries), size)
        entries += more
        taken = fitting(entries)
        if len(taken) < len(entries):
            return tuple(taken), after + len(taken)
        if len(more) < size:
            return tuple(entries), None
    return tuple(entries), after + len(entries)
