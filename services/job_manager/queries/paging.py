"""Pages of lists: as many entries as fit into a message, and where the next page begins."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

T = TypeVar("T")

REPLY_BYTES = 700_000
"""The most bytes of a page's entries; brokers accept a million."""
CHUNK = 50
"""Entries that are read at a time, if each may be large."""

_encoder = msgspec.json.Encoder()


def fitting(entries: Iterable[T], room: int = REPLY_BYTES) -> list[T]:
    """Return the first entries that fit into so many bytes; the very first in any case."""
    taken: list[T] = []
    for each in entries:
        room -= len(_encoder.encode(each)) + 1
        if room < 0 and taken:
            break
        taken.append(each)
    return taken


def page(entries: Sequence[T], after: int, limit: int) -> tuple[tuple[T, ...], int | None]:
    """Return the entries from index `after` on that fit a page, and the index where the next page begins, or None at the end."""
    taken = fitting(entries[after : after + limit])
    following = after + len(taken)
    return tuple(taken), following if following < len(entries) else None


async def read_page(
    read: Callable[[int, int], Awaitable[Sequence[T]]], after: int, limit: int
) -> tuple[tuple[T, ...], int | None]:
    """Return such a page of entries that are read in parts: `read` returns at most so many from a number on."""
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
