"""The dashboard's files as they were built: one page for all its addresses, and files with digests in their names."""

import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from services.gateway.gate import Gate

BUILT: Final = Path(__file__).with_name("dashboard") / "dist"
"""Where `make dashboard` puts the files; a wheel has them."""
PAGE: Final = "index.html"
ADDRESSES: Final = (
    "/",
    "/jobs",
    "/jobs/{job_id:int}",
    "/queues",
    "/sites",
    "/sites/{site}",
    "/pilots",
    "/usage",
    "/submit",
)
"""The addresses that the page shows something at."""
FILES: Final = "/assets/{name}"
FOR_GOOD: Final = "public, max-age=31536000, immutable"
NOT_BUILT: Final = (
    "The gateway runs, but its dashboard was not built.\n"
    "Run `make dashboard` in the source tree and start the gateway again, or install wms from a wheel.\n"
    "The interface for programs is described at /api/v1/openapi.json.\n"
)
HEADERS: Final[Mapping[str, str]] = {
    # Nothing is loaded from elsewhere, nothing written into the page is run, and no other page may frame this one.
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class DashboardFiles:
    """The endpoints of the page and of its files, all of which are read once and kept in memory."""

    def __init__(self, gate: Gate, directory: Path = BUILT) -> None:
        self._gate = gate
        page = directory / PAGE
        self._page = page.read_bytes() if page.is_file() else None
        self._files = {each.name: each.read_bytes() for each in sorted((directory / "assets").glob("*"))}

    async def page(self, request: Request) -> Response:
        """Return the page, or what to run if it was not built. Rejected: this address asks too often."""
        self._gate.admit_anyone(request)
        if self._page is None:
            return PlainTextResponse(NOT_BUILT, 503, HEADERS)
        return Response(self._page, media_type="text/html", headers={**HEADERS, "Cache-Control": "no-cache"})

    async def file(self, request: Request) -> Response:
        """Return a file, which browsers keep for good. Rejected: this address asks too often."""
        self._gate.admit_anyone(request)
        name = request.path_params["name"]
        if name not in self._files:
            return PlainTextResponse("There is no such file.\n", 404, HEADERS)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(self._files[name], media_type=kind, headers={**HEADERS, "Cache-Control": FOR_GOOD})
