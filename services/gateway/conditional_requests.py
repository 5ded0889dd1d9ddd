"""Conditional requests: a response that the client has already is not sent again, but answered with status 304.

The ids of the request and the client do not enter the ETag, so every gateway gives equal content the same ETag.
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
"""The value of `Cache-Control`: clients may keep a response for themselves, but must ask each time whether it is still current."""


def answer_to(request: Request, value: Any) -> Response:
    """Return the response with the value as JSON and its ETag; status 304 without a body if the client has that ETag."""
    return response(request, msgspec.json.encode(value), mark_of(value))


def response(request: Request, raw: bytes, mark: str) -> Response:
    """Return the response with the JSON in `raw` and the ETag `mark`; status 304 without a body if the client has that ETag."""
    return unchanged(request, mark) or Response(raw, media_type=JSON_TYPE, headers=headers(mark))


def unchanged(request: Request, mark: str) -> Response | None:
    """Return a response with status 304 if the request's `If-None-Match` names the ETag `mark` or is `*`; otherwise None."""
    named = {each.strip().removeprefix("W/") for each in request.headers.get(HEADER, "").split(",")}
    if not named & {mark.removeprefix("W/"), "*"}:
        return None
    return Response(status_code=NOT_MODIFIED, headers=headers(mark))


def headers(mark: str) -> dict[str, str]:
    """Return the response headers for the ETag `mark`: `ETag` and `Cache-Control`."""
    return {"ETag": mark, "Cache-Control": CACHED}


def mark_of(value: Any) -> str:
    """Return the ETag of a value. The tag is weak, since responses with the same ETag may differ in the ids of their requests."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.replace(
            value, **{name: "" for name in OF_REQUEST if name in value.__struct_fields__}
        )
    return f'W/"{hashlib.blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()}"'
