"""The byte range of an archive that a request asks for, by the header `Range` (RFC 9110)."""

import re
from typing import Any, Final

from starlette.requests import Request

from services.gateway.problem import OutOfRange

HEADER: Final = "range"
PATTERN: Final = r"bytes=([0-9]{1,18})-([0-9]{0,18})|bytes=-([0-9]{1,18})"
"""One range of bytes: from a position, or up to the end. Several ranges in one request are not served."""

_FORM: Final = re.compile(PATTERN)


def check_range(request: Request, size: int) -> None:
    """Check the range of a request for an object of `size` bytes, and remove from the request a header that is none, or several.

    The whole object is served without the header, as RFC 9110 permits. Raise OutOfRange if the range begins after the object's end.
    """
    said = request.headers.get(HEADER)
    if said is None:
        return
    found = _FORM.fullmatch(said.strip())
    if found is None or not _is_in_order(found):
        _drop(request)
    elif int(found[1] or 0) >= size or (found[3] is not None and int(found[3]) == 0):
        raise OutOfRange(size)


def _is_in_order(found: re.Match[str]) -> bool:
    return not found[2] or int(found[1]) <= int(found[2])


def _drop(request: Request) -> None:
    scope: Any = request.scope
    scope["headers"] = [each for each in scope["headers"] if each[0].lower() != HEADER.encode()]
