"""Requests for what a job printed: which part of it, who asked for it, and the pilot that is asked."""

from typing import Final

from wms.messages import replies
from wms.messages.queries import PeekJob
from wms.messages.reports import Peeked
from wms.messages.site_inbox import Peek
from wms.output_text import decoded, encoded, is_within_character
from wms.printed_text import printed

CHARACTER_BYTES: Final = 4
"""The most bytes of one character in UTF-8."""
LONG_TAIL: Final = 4_000
"""From this many bytes on, the stored end of an output may not be all of it."""


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
        # Earlier versions sign no word on it.
        *(("raw",) if what.raw else ()),
    )


def job_output(
    wanted: PeekJob | Peeked,
    text: str,
    offset: int,
    size: int,
    *,
    live: bool,
    end: int | None = None,
    whole: bool = True,
) -> replies.JobOutput:
    """Return the answer with a part of what a job printed: `text`, from byte `offset` to `end` of `size`.

    It is made safe to show, unless raw text is `wanted`. If `end` is None, the text has all its bytes. `whole` says whether the positions
    count all bytes that were printed.
    """
    return replies.JobOutput(
        query_id=wanted.query_id,
        client=wanted.client,
        job_id=wanted.job_id,
        stream=wanted.stream,
        offset=offset,
        size=size,
        text=text if wanted.raw else printed(text),
        live=live,
        end=offset + len(encoded(text)) if end is None else end,
        whole=whole,
    )


def told_from(tail: str, start: int | None) -> int | None:
    """Return what is stored of the position of an output's end: nothing of a short one, which is all of the output."""
    return start if start or len(encoded(tail)) >= LONG_TAIL else None


def stored_output(query: PeekJob, tail: str, start: int | None) -> replies.JobOutput:
    """Return the answer with a part of the stored end of an ended job's output. `start` is its position in the whole; None: not known."""
    size = len(encoded(tail))
    if start is None and size < LONG_TAIL:
        start = 0
    before = start if query.whole and start else 0
    wanted = None if query.offset is None else max(0, query.offset - before)
    offset, text = piece(tail, wanted, query.limit)
    is_whole = query.whole and start is not None
    return job_output(query, text, before + offset, before + size, live=False, whole=is_whole)


def piece(text: str, offset: int | None, limit: int) -> tuple[int, str]:
    """Return at most `limit` bytes of an output's text from `offset` on, or its last bytes if `offset` is None, and where they begin.

    No character is cut: a piece may be shorter than `limit`, or one character if `limit` has no room for that. An offset beyond the end
    gives an empty piece at the end.
    """
    raw = encoded(text)
    begin = max(0, len(raw) - limit) if offset is None else min(offset, len(raw))
    while begin < len(raw) and is_within_character(raw[begin]):
        begin += 1
    found, _ = decoded(raw[begin : begin + limit], is_end=False)
    return begin, found or decoded(raw[begin : begin + CHARACTER_BYTES], is_end=False)[0][:1]
