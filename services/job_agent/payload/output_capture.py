"""The captured standard output or error of a payload: readable while the payload prints, and joined to one file at its end.

The shepherd, which starts payloads, stores the beginning of the output and its last few segments as files. So any process of
the same user can read them at any time.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from services.job_agent.payload.output_stream import (
    SEGMENTS_KEPT,
    head_bytes,
    segment_bytes,
    segment_path,
)
from wms.output_text import decoded, is_within_character

COPY_BYTES = 1024 * 1024
BLOCK = 4_096


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive bytes of a payload's output, and their position in it."""

    data: bytes
    offset: int
    """The position of the first byte of `data` in the output, from 0."""
    total: int
    """How many bytes the payload has printed so far, including those that are not stored."""

    @property
    def next_offset(self) -> int:
        """The position after the last byte of `data`, from which the next read goes on."""
        return self.offset + len(self.data)


class Tail(NamedTuple):
    """The end of a payload's output as text, and how many bytes come before it."""

    text: str
    start: int


class _Piece(msgspec.Struct, frozen=True):
    start: int
    size: int
    path: Path


class Captured:
    """The captured standard output or error of one payload. Its methods block for a short time.

    `path` is the file with the beginning of the output. `capture` is the most bytes that are stored: half from the beginning,
    half from the end.
    """

    def __init__(self, path: Path, capture: int) -> None:
        self.path = path
        self._capture = capture

    @property
    def most_bytes(self) -> int:
        """The most bytes on disk that the files of this output can take, including the joined file."""
        return 2 * self._capture + (SEGMENTS_KEPT + 2) * BLOCK

    def read(self, max_bytes: int, offset: int | None = None) -> Chunk:
        """Return at most `max_bytes` of the output, from the position `offset` on. None: return its last bytes.

        If bytes at that position are not stored, the result begins later, with the next that are. It is empty if there are no
        more bytes.
        """
        pieces = self._pieces()
        total = _end(pieces)
        start = max(0, total - max_bytes) if offset is None else min(max(0, offset), total)
        data = bytearray()
        first: int | None = None
        for piece in pieces:
            at = max(start, piece.start)
            if first is not None and at != first + len(data):
                break  # a gap: the rest comes with the next read
            left = min(max_bytes - len(data), piece.start + piece.size - at)
            if left > 0:
                first = at if first is None else first
                data += _read(piece.path, at - piece.start, left)
        return Chunk(data=bytes(data), offset=total if first is None else first, total=total)

    def tail(self, limit: int) -> Tail:
        """Return the end of the output as text, from its last `limit` bytes. Each byte that is not UTF-8 is replaced."""
        chunk = self.read(limit)
        cut = 0
        while chunk.offset and cut < min(3, len(chunk.data)) and is_within_character(chunk.data[cut]):
            cut += 1
        return Tail(decoded(chunk.data[cut:], is_end=True)[0], chunk.offset + cut)

    def finish(self) -> Path | None:
        """Return the path of one file with the whole output, made after the payload's end. None if there is no output.

        If a part was not stored, a line between beginning and end says how many bytes are missing.
        """
        pieces = self._pieces()
        if not pieces:
            return None
        if len(pieces) == 1 and self.path.lstat().st_size == pieces[0].size:
            return self.path
        whole = self.path.with_name(self.path.name + ".whole")
        whole.unlink(missing_ok=True)
        with whole.open("xb") as target:
            self._join(pieces, target)
        return whole

    def _join(self, pieces: list[_Piece], target: BinaryIO) -> None:
        head, *rest = pieces
        total = _end(pieces)
        resume = max(head.start + head.size, total - (self._capture - head_bytes(self._capture)))
        _copy(head, 0, target)
        if left_out := resume - (head.start + head.size):
            target.write(f"\n[... {left_out} bytes left out ...]\n".encode())
        for piece in rest:
            if piece.start + piece.size > resume:
                _copy(piece, max(0, resume - piece.start), target)

    def _pieces(self) -> list[_Piece]:
        """Return the stored pieces of the output in order: the file with its beginning, then the segments that still exist."""
        head = _size(self.path, head_bytes(self._capture))
        if head is None:
            return []
        if head < head_bytes(self._capture):
            return [_Piece(0, head, self.path)]
        return [_Piece(0, head, self.path), *self._segments(head)]

    def _segments(self, head: int) -> Iterator[_Piece]:
        named = re.compile(re.escape(self.path.name) + r"\.([0-9]+)")
        found = (named.fullmatch(path.name) for path in self.path.parent.iterdir())
        each = segment_bytes(self._capture)
        for index in sorted(int(match[1]) for match in found if match)[-SEGMENTS_KEPT:]:
            path = Path(segment_path(str(self.path), index))
            size = _size(path, each)
            if size is not None:  # else overtaken by newer ones
                yield _Piece(head + (index - 1) * each, size, path)


def _end(pieces: list[_Piece]) -> int:
    return pieces[-1].start + pieces[-1].size if pieces else 0


def _size(path: Path, most: int) -> int | None:
    """Return how many bytes of output a file has, at most `most`; None if it is no regular file.

    The shepherd never writes more than `most` bytes to it, but a payload may have changed it.
    """
    try:
        found = path.lstat()
    except OSError:
        return None
    return min(found.st_size, most) if stat.S_ISREG(found.st_mode) else None


def _read(path: Path, skip: int, size: int) -> bytes:
    try:
        # A payload that is not contained may have put a link or a pipe in its place.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        file.seek(skip)
        return file.read(size)


def _copy(piece: _Piece, skip: int, target: BinaryIO) -> None:
    target.writelines(
        _read(piece.path, start, min(COPY_BYTES, piece.size - start))
        for start in range(skip, piece.size, COPY_BYTES)
    )
