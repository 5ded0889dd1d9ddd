"""Reads files of traces and recordings line by line, gzipped (.gz) or not."""

import gzip
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from wms.errors import Rejected
from wms.replay import swf

Read = TypeVar("Read")


def read_trace(path: Path, most: int) -> swf.Trace:
    """Return the first `most` jobs of the trace in a file (SWF). Raise Rejected, naming the line, if the file is no trace."""
    return read_lines(path, swf.LINE_LIMIT, lambda lines: swf.read(lines, most))


def read_lines(path: Path, limit: int, read: Callable[[Iterable[str]], Read]) -> Read:
    """Call `read` with the lines of a file, and return its result. Lines longer than `limit` characters are cut to `limit` + 1.

    Raise Rejected if the file cannot be read.
    """

    def lines() -> Iterable[str]:
        opened: Any = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            while line := file.readline(limit + 1):
                yield line

    try:
        return read(lines())
    except (OSError, EOFError, zlib.error) as error:
        raise Rejected(
            "NO_TRACE", f"cannot read {path}: {error}", "name a trace in SWF, or one gzipped"
        ) from None
