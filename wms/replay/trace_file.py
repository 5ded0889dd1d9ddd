"""Files of traces and recordings, read line by line, gzipped or not."""

import gzip
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from wms.errors import Rejected
from wms.replay import swf

Read = TypeVar("Read")


def read_trace(path: Path, most: int) -> swf.Trace:
    """Return the first jobs of a trace in SWF. Raises Rejected, naming the line, if the file holds no trace."""
    return read_lines(path, swf.LINE_LIMIT, lambda lines: swf.read(lines, most))


def read_lines(path: Path, limit: int, read: Callable[[Iterable[str]], Read]) -> Read:
    """Return what `read` makes of a file's lines; a line over the limit arrives cut to one character more than it."""

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
