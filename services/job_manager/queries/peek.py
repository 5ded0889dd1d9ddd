"""Requests for what a job printed: which part of it, who asked for it, and the pilot that is asked."""

from typing import Final

from wms.messages.reports import Peeked
from wms.messages.site_inbox import Peek

CHARACTER_BYTES: Final = 4
"""The most bytes of one character in UTF-8."""


def peeking(what: Peek | Peeked) -> tuple[str | int, ...]:
    """Return the values that a signature covers: of an order to a pilot to send a job's output (Peek), or of the answer to it (Peeked).

    They are equal for an order and its answer. So the answer proves which order it belongs to.
    """
    return (
        what.pilot_id,
        what.job_id,
        what.epoch,
        what.stream,
        what.query_id,
        what.client,
        what.asker,
    )


def piece(text: str, offset: int | None, limit: int) -> tuple[int, str]:
    """Return at most `limit` bytes of a text in UTF-8 from `offset` on, or its last bytes if `offset` is None, and where they begin.

    No character is cut: a piece may be shorter than `limit`, or one character if `limit` has no room for that. An offset beyond the end
    gives an empty piece at the end.
    """
    raw = text.encode()
    begin = max(0, len(raw) - limit) if offset is None else min(offset, len(raw))
    while begin < len(raw) and _is_within_character(raw[begin]):
        begin += 1
    return begin, _decoded(raw[begin : begin + limit]) or _decoded(raw[begin : begin + CHARACTER_BYTES])[:1]


def _decoded(raw: bytes) -> str:
    """Return the text of these bytes, without a character that is cut at the end."""
    return raw.decode(errors="ignore")


def _is_within_character(byte: int) -> bool:
    return byte & 0xC0 == 0x80
