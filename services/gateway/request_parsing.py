"""Reads the parameters and the body of a request. The body's size and its time are limited before it is parsed."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from services.gateway.operation import JSON_TYPE
from services.gateway.route import Route
from wms.client.submission import check_id, new_id
from wms.decoding import UNDECODABLE
from wms.errors import Rejected
from wms.messages.wire import PAYLOAD_LIMIT

ID_HEADER = "idempotency-key"
LEAST_RATE = 1_000
"""The lowest rate in bytes per second at which a body must arrive, once the time allowed at first is used."""

P = TypeVar("P", bound=msgspec.Struct)


def request_id(request: Request) -> str:
    """Return the id under which a request takes effect at most once: the header `Idempotency-Key`, or else a new id.

    Raise Rejected if the header is malformed.
    """
    said = request.headers.get(ID_HEADER)
    if said is None:
        return new_id()
    check_id(said)
    return said


def parameters(request: Request, kind: type[P]) -> P:
    """Return the parameters of the path and the query string as a struct of the type `kind`.

    Raise Rejected if one is unknown, missing, given twice, or of the wrong type.
    """
    table: dict[str, Any] = {}
    for name, value in (*request.path_params.items(), *request.query_params.multi_items()):
        if name in table:
            raise Rejected("BAD_PARAMETER", f"the parameter {name} is given twice")
        table[name] = value
    try:
        return msgspec.convert(table, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Rejected("BAD_PARAMETER", str(error), "docs/openapi.json describes each route") from None


async def body(request: Request, route: Route, seconds: float) -> Any:
    """Return the JSON body of a route's request, decoded as the route's type.

    Raise Rejected if it is too large, malformed or of another media type, or arrives too slowly. `seconds` limits each wait for more of it.
    """
    require_type(request, *route.body_types)
    return _parsed(await whole(request, PAYLOAD_LIMIT, seconds), route.body)


async def decoded(request: Request, kind: type[P], limit: int, seconds: float) -> P:
    """Return the JSON body, decoded as `kind`. Raise Rejected if it is malformed, is over `limit` bytes, or is not complete within `seconds`."""
    require_type(request, JSON_TYPE)
    try:
        async with asyncio.timeout(seconds):
            raw = await whole(request, limit, seconds)
    except TimeoutError:
        raise Rejected("BODY_TOO_SLOW", f"the body did not come within {seconds:g} s") from None
    read: P = _parsed(raw, kind)
    return read


def _parsed(raw: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNDECODABLE as error:
        raise Rejected("BODY_INVALID", str(error), "docs/openapi.json describes each route") from None


def media_type(request: Request) -> str:
    """Return the media type of a request's body, without parameters, in lower case."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def require_type(request: Request, *types: str) -> str:
    """Return the media type of a request's body. Raise Rejected if it is none of `types`, or if the body is compressed for its way."""
    found = media_type(request)
    if found not in types:
        raise Rejected(
            "MEDIA_TYPE", "the body is of a type that is not read here", f"send {' or '.join(types)}"
        )
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Rejected(
            "MEDIA_TYPE", "compressed bodies are not read here", "send it without Content-Encoding"
        )
    return found


def body_size(request: Request, limit: int) -> int:
    """Return how many bytes the body of a request has at most, by its header `Content-Length`; without that, and at most, `limit`."""
    said = request.headers.get("content-length", "")
    return min(int(said[:20]), limit) if said.isdecimal() else limit


async def whole(request: Request, limit: int, seconds: float) -> bytes:
    """Return the body of a request as bytes. Raise Rejected if it is over `limit` bytes, or a wait for more of it exceeds `seconds`."""
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said[:20]) > limit:
        raise _too_large(limit)
    read = bytearray()
    async for piece in pieces(request, seconds):
        read += piece
        if len(read) > limit:
            raise _too_large(limit)
    return bytes(read)


async def pieces(request: Request, seconds: float, rate: float = LEAST_RATE) -> AsyncIterator[bytes]:
    """Yield pieces of the body as they arrive. Raise Rejected if the client disconnects or is too slow.

    The server waits `seconds` in all, and one second more for each `rate` bytes that arrive, but never over `seconds` at once.
    """
    stream = request.stream()
    left = seconds
    try:
        while True:
            began = time.monotonic()
            async with asyncio.timeout(left):
                piece = await anext(stream, None)
            if piece is None:
                return
            left = min(seconds, left - (time.monotonic() - began) + len(piece) / rate)
            yield piece
    except TimeoutError:
        raise Rejected("BODY_TOO_SLOW", f"the body came slower than {rate:,.0f} bytes a second") from None
    except ClientDisconnect:
        raise Rejected("BODY_CUT", "the sender went away before the end of the body") from None


def _too_large(limit: int) -> Rejected:
    return Rejected("BODY_TOO_LARGE", f"the body is over {limit:,} bytes", "send it in parts")
