"""What a payload prints on its way from a pipe into files of limited size: its beginning and its last segments.

The shepherd loads this module by its path, so it has no dependencies.
"""

# pathlib would double the time to start of the shepherd.
# ruff: noqa: PTH108

from __future__ import annotations

import os

PIPE_BYTES = 65_536
DRAIN_READS = 32
# Of what is kept of an output, the head takes half; the tail is a row of segments of an eighth, of which the last
# five are kept: four whole ones, which make the other half, and the one being written.
SEGMENTS_KEPT = 5


def head_bytes(capture: int) -> int:
    """Return how many bytes of a payload's output are stored from its beginning: half of `capture`, all bytes that are stored."""
    return max(capture // 2, 1)


def segment_bytes(capture: int) -> int:
    """Return the most bytes of each later file of a payload's output (a segment). `capture` is how many bytes are stored in all."""
    return max(capture // 8, 1)


def segment_path(path: str, index: int) -> str:
    """Return the path of the file with number `index` of a payload's output. Number 0 has the beginning, and its path is `path`."""
    return path if index == 0 else f"{path}.{index}"


class OutputStream:
    """Standard output or error of a payload, copied from a pipe into files of limited size: its beginning and its last segments.

    `descriptor` is the read end of the pipe, `path` the first file. `capture` is how many bytes are stored in all.
    """

    def __init__(self, descriptor: int, path: str, capture: int) -> None:
        self.descriptor = descriptor
        self.overflow = 0
        self._path = path
        self._capture = capture
        self._room = head_bytes(capture)
        self._left = capture
        self._index = 0
        self._file: int | None = None
        self._broken = False

    def pump(self) -> bool:
        """Copy the bytes of one read of the pipe to the files. Return False at the end of the output, else True."""
        try:
            data = os.read(self.descriptor, PIPE_BYTES)
        except BlockingIOError:
            return True
        self._write(data)
        return bool(data)

    def drain(self) -> None:
        """Copy the rest of the output after the payload's end, and close the pipe and the file."""
        try:
            # Bounded, for a writer that is not the payload's may hold the pipe.
            for _ in range(DRAIN_READS):
                data = os.read(self.descriptor, PIPE_BYTES)
                self._write(data)
                if not data:
                    break
        except BlockingIOError:
            pass
        os.close(self.descriptor)
        if self._file is not None:
            os.close(self._file)

    def _write(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self.overflow += len(data)
        view = memoryview(data)
        while view and not self._broken:
            try:
                view = view[self._put(view) :]
            except OSError:
                # A full disk ends the capture, not the payload.
                self._broken = True

    def _put(self, view: memoryview) -> int:
        if self._file is not None and self._room == 0:
            self._turn(self._file)
        if self._file is None:
            self._file = self._open()
        written = os.write(self._file, view[: self._room])
        self._room -= written
        return written

    def _turn(self, full: int) -> None:
        self._file = None
        os.close(full)
        self._index += 1
        self._room = segment_bytes(self._capture)
        if self._index > SEGMENTS_KEPT:
            os.unlink(segment_path(self._path, self._index - SEGMENTS_KEPT))

    def _open(self) -> int:
        path = segment_path(self._path, self._index)
        # Not waiting, should a payload have put a pipe there.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(path, flags, 0o600)
