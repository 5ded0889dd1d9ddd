"""Serves the dashboard's built files: one HTML page for all its URLs, and assets with digests in their names."""

import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from services.gateway.authentication import Authentication

BUILT: Final = Path(__file__).with_name("dashboard") / "dist"
"""The directory into which `make dashboard` builds the files. A wheel contains it."""
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
"""The URL paths at which the page is served. The page's script shows the view for each."""
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
    """The endpoints of the dashboard's page and assets. All files are read at the start and kept in memory."""

    def __init__(self, authentication: Authentication, directory: Path = BUILT) -> None:
        self._authentication = authentication
        page = directory / PAGE
        self._page = page.read_bytes() if page.is_file() else None
        self._files = {each.name: each.read_bytes() for each in sorted((directory / "assets").glob("*"))}

    async def page(self, request: Request) -> Response:
        """Return the page; status 503 with the command to run if the dashboard was not built.

        Raise TooMany if the client's address exceeds its request rate.
        """
        self._authentication.admit_anyone(request)
        if self._page is None:
            return PlainTextResponse(NOT_BUILT, 503, HEADERS)
        return Response(self._page, media_type="text/html", headers={**HEADERS, "Cache-Control": "no-cache"})

    async def file(self, request: Request) -> Response:
        """Return an asset, which browsers may cache for a year; status 404 if there is none of this name.

        Raise TooMany if the client's address exceeds its request rate.
        """
        self._authentication.admit_anyone(request)
        name = request.path_params["name"]
        if name not in self._files:
            return PlainTextResponse("There is no such file.\n", 404, HEADERS)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(self._files[name], media_type=kind, headers={**HEADERS, "Cache-Control": FOR_GOOD})
