"""The gateway's sandbox store: bodies of requests are stored under their digest, and stored archives are sent once their digest is verified."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from services.gateway import conditional_requests, request_parsing
from services.gateway.byte_range import Span, span_of
from services.gateway.http_connection import KEY
from services.gateway.open_archives import OpenArchive
from services.gateway.service_requests import Desk
from wms.errors import Rejected
from wms.gateway.direct_download import PREFERENCE, REDIRECTED
from wms.jobdesc.description import SandboxRef
from wms.transfer import SandboxStore

ARCHIVE: Final = "application/gzip"
PIECE_BYTES: Final = 65_536


def opened(desk: Desk) -> SandboxStore:
    """Return the gateway's sandbox store. Raise Rejected (NO_STORE) if none is configured."""
    if desk.store is None:
        raise Rejected(
            "NO_STORE", "this gateway has no sandbox store", "its operators set url in [sandboxes]"
        )
    return desk.store


async def kept(request: Request, desk: Desk, holder: str) -> SandboxRef:
    """Store the body of a request, and return the reference to it. Raise Rejected if it exceeds the store's size limit, or arrives too slowly.

    It waits for a turn of the holder (`Transfers`).
    """
    store, settings = opened(desk), desk.settings
    async with desk.transfers.under_way(holder):
        size = request_parsing.body_size(request, store.max_object)
        with desk.temporary.held(holder, size), tempfile.NamedTemporaryFile(prefix="wms-upload-") as file:
            left = store.max_object
            pieces = request_parsing.pieces(request, settings.read_seconds, settings.transfer_rate)
            async for piece in pieces:
                left -= len(piece)
                if left < 0:
                    raise Rejected("SANDBOX_TOO_LARGE", f"the archive is over {store.max_object:,} bytes")
                await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(file.flush)
            return await store.put(Path(file.name))


async def archive(desk: Desk, request: Request, digest: str, name: str, holder: str) -> Response:
    """Return a response with the stored object of this digest, or the byte range that the request asks for. `name` is the suggested file name.

    Raise OutOfRange if the range begins after the object's end. If the request has `Prefer: redirect` and the store signs URLs, return a
    redirect to a signed URL. It waits for a turn of the holder (`Transfers`).
    """
    store = opened(desk)
    if request.headers.get("Prefer") == PREFERENCE:
        url = await store.download_url(digest, desk.signed_url_seconds)
        if url is not None:
            return RedirectResponse(url, REDIRECTED, {"Cache-Control": "no-store"})
    assert desk.archives is not None
    mark = f'"{digest}"'
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(desk.transfers.under_way(holder))
        found = await stack.enter_async_context(desk.archives.reading(digest, holder))
        span = span_of(request, found.size, mark)
        headers = conditional_requests.headers(mark) | span.headers(found.size)
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
        pieces = _pieces(request, found, span, desk)
        return ArchiveResponse(pieces, span.status, headers, stack.pop_all())
    raise AssertionError("the stack swallows nothing")


class ArchiveResponse(StreamingResponse):
    """A response that sends pieces of an archive, and lets go of it at the end, however it ends."""

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        status: int,
        headers: dict[str, str],
        held: contextlib.AsyncExitStack,
    ) -> None:
        super().__init__(pieces, status, headers, ARCHIVE)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        async with self._held:
            await super().__call__(scope, receive, send)


async def _pieces(request: Request, found: OpenArchive, span: Span, desk: Desk) -> AsyncIterator[bytes]:
    """Yield the pieces of a span. A reader who is slower than the least rate, after some seconds, is cut off."""
    if request.method == "HEAD":
        return
    settings = desk.settings
    began, at = time.monotonic(), span.first
    while at < span.end:
        piece = await asyncio.to_thread(found.piece, at, min(PIECE_BYTES, span.end - at))
        yield piece
        at += len(piece)
        allowed = settings.write_seconds + (at - span.first) / settings.transfer_rate
        if time.monotonic() - began > allowed:
            request.scope[KEY].abort()
            return
