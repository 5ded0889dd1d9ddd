"""The gateway's sandbox store: bodies of requests are stored under their digest, and stored archives are sent once their digest is verified."""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from services.gateway import conditional_requests, request_parsing
from services.gateway.byte_range import check_range
from services.gateway.service_requests import Desk
from wms.errors import Rejected
from wms.gateway.direct_download import PREFERENCE, REDIRECTED
from wms.jobdesc.description import SandboxRef
from wms.transfer import SandboxStore

ARCHIVE: Final = "application/gzip"


def opened(desk: Desk) -> SandboxStore:
    """Return the gateway's sandbox store. Raise Rejected (NO_STORE) if none is configured."""
    if desk.store is None:
        raise Rejected(
            "NO_STORE", "this gateway has no sandbox store", "its operators set url in [sandboxes]"
        )
    return desk.store


async def kept(request: Request, store: SandboxStore, seconds: float) -> SandboxRef:
    """Store the body of a request, and return the reference to it. Raise Rejected if it exceeds the store's size limit, or arrives too slowly.

    `seconds` limits each wait for more of it.
    """
    with tempfile.NamedTemporaryFile(prefix="wms-upload-") as file:
        size = 0
        async for piece in request_parsing.pieces(request, seconds):
            size += len(piece)
            if size > store.max_object:
                raise Rejected("SANDBOX_TOO_LARGE", f"the archive is over {store.max_object:,} bytes")
            await asyncio.to_thread(file.write, piece)
        await asyncio.to_thread(file.flush)
        return await store.put(Path(file.name))


async def archive(desk: Desk, request: Request, digest: str, name: str) -> Response:
    """Return a response with the stored object of this digest, or the byte range that the request asks for. `name` is the suggested file name.

    Raise OutOfRange if the range begins after the object's end. If the request has `Prefer: redirect` and the store signs URLs, return a redirect to a signed URL.
    """
    store = opened(desk)
    if request.headers.get("Prefer") == PREFERENCE:
        url = await store.download_url(digest, desk.signed_url_seconds)
        if url is not None:
            return RedirectResponse(url, REDIRECTED, {"Cache-Control": "no-store"})
    return await _sent(request, store, digest, name)


async def _sent(request: Request, store: SandboxStore, digest: str, name: str) -> FileResponse:
    aside = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="wms-output-"))
    try:
        await store.fetch(digest, aside / "output")
        check_range(request, (aside / "output").stat().st_size)
    except BaseException:
        await asyncio.to_thread(_remove, aside)
        raise
    return FileResponse(
        aside / "output",
        media_type=ARCHIVE,
        filename=name,
        headers=conditional_requests.headers(f'"{digest}"'),
        background=BackgroundTask(_remove, aside),
    )


def _remove(aside: Path) -> None:
    (aside / "output").unlink(missing_ok=True)
    aside.rmdir()
