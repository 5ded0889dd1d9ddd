"""Conditional requests: an answer that its reader has already is not sent again (304).

The mark of an answer (`ETag`) leaves out what only names the request, so that the same content has the same mark at every gateway.
"""

import hashlib
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway.operation import JSON_TYPE

NOT_MODIFIED: Final = 304
HEADER: Final = "if-none-match"
OF_REQUEST: Final = ("query_id", "client")
CACHED: Final = "private, no-cache"
"""Readers may keep an answer for themselves, and ask each time whether it still holds."""


def answer_to(request: Request, value: Any) -> Response:
    """Return the response with this value as JSON; an empty one if the reader has it already."""
    return response(request, msgspec.json.encode(value), mark_of(value))


def response(request: Request, raw: bytes, mark: str) -> Response:
    """Return the response with this JSON under this mark; an empty one if the reader has it already."""
    return unchanged(request, mark) or Response(raw, media_type=JSON_TYPE, headers=headers(mark))


def unchanged(request: Request, mark: str) -> Response | None:
    """Return the response to a reader who names this mark; None to others."""
    named = {each.strip().removeprefix("W/") for each in request.headers.get(HEADER, "").split(",")}
    if not named & {mark.removeprefix("W/"), "*"}:
        return None
    return Response(status_code=NOT_MODIFIED, headers=headers(mark))


def headers(mark: str) -> dict[str, str]:
    """Return the headers that go with a marked answer."""
    return {"ETag": mark, "Cache-Control": CACHED}


def mark_of(value: Any) -> str:
    """Return the mark of an answer. It is weak, as answers of one mark may differ in the names of their requests."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.replace(
            value, **{name: "" for name in OF_REQUEST if name in value.__struct_fields__}
        )
    return f'W/"{hashlib.blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()}"'
