"""The byte range of an archive that a request asks for, by the header `Range` (RFC 9110)."""

import re
from typing import Final

import msgspec
from starlette.requests import Request

from services.gateway.problem import OutOfRange

HEADER: Final = "range"
PARTIAL: Final = 206
PATTERN: Final = r"bytes=([0-9]{1,18})-([0-9]{0,18})|bytes=-([0-9]{1,18})"
"""One range of bytes: from a position, or up to the end. Several ranges in one request are not served."""

_FORM: Final = re.compile(PATTERN)


class Span(msgspec.Struct, frozen=True):
    """The bytes of an object that are sent: from `first` up to, and without, `end`."""

    first: int
    end: int
    status: int = 200

    def headers(self, size: int) -> dict[str, str]:
        """Return the headers that tell of the span, in an object of `size` bytes."""
        told = {"Accept-Ranges": "bytes", "Content-Length": str(self.end - self.first)}
        if self.status == PARTIAL:
            told["Content-Range"] = f"bytes {self.first}-{self.end - 1}/{size}"
        return told


def span_of(request: Request, size: int, mark: str) -> Span:
    """Return the bytes that a request asks for of an object of `size` bytes, whose ETag is `mark`.

    All are sent for a header that is no range or several, or if `If-Range` names another ETag, as RFC 9110 permits. Raise OutOfRange if the
    range begins after the object's end.
    """
    said = request.headers.get(HEADER)
    found = _FORM.fullmatch(said.strip()) if said is not None else None
    if found is None or request.headers.get("if-range", mark) != mark:
        return Span(0, size)
    if found[3] is not None:
        first, end = max(0, size - int(found[3])), size
    else:
        first, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
        if found[2] and int(found[2]) < first:
            return Span(0, size)
    if first >= size or first >= end:
        raise OutOfRange(size)
    return Span(first, end, PARTIAL)
