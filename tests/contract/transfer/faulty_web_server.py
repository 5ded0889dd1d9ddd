"""A web server that lies: bodies without end, cut bodies, trickles, and answers to ranges that were not asked for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.web_server import web_server

CONTENT = bytes(range(256)) * 4_096
"""What `/cut` has, a megabyte."""


class FaultyWebServer:
    """The server, and what it was asked."""

    def __init__(self) -> None:
        self.port = 0
        self.ranges: list[str] = []
        """The ranges of requests, empty for the whole."""
        self.tags = '"one"'
        self.cuts = 1
        """How many more answers of `/cut` break off in the middle."""

    def url(self, path: str) -> str:
        """Return a URL of the server."""
        return f"http://127.0.0.1:{self.port}/{path}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer as the path says."""
        self.ranges.append(request.headers.get("Range", ""))
        kinds = {
            "/endless": self._endless,
            "/trickle": self._trickle,
            "/cut": self._cut,
            "/packed": self._packed,
        }
        return await kinds[request.path](request)

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        answer = await _begun(request, {})
        while True:
            await answer.write(bytes(65_536))

    async def _trickle(self, request: web.Request) -> web.StreamResponse:
        answer = await _begun(request, {"Content-Length": "1000000"})
        while True:
            await answer.write(b"x")
            await asyncio.sleep(0.05)

    async def _packed(self, request: web.Request) -> web.StreamResponse:
        return await _begun(request, {"Content-Encoding": "gzip"})

    async def _cut(self, request: web.Request) -> web.StreamResponse:
        wanted = request.headers.get("Range", "")
        first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if request.headers.get("If-Range", self.tags) != self.tags:
            first = 0
        rest = CONTENT[first:]
        headers = {"ETag": self.tags, "Content-Length": str(len(rest))}
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(CONTENT) - 1}/{len(CONTENT)}"
        answer = await _begun(request, headers, 206 if first else 200)
        self.cuts, is_cut = self.cuts - 1, self.cuts > 0
        await answer.write(rest[: len(rest) // 2] if is_cut else rest)
        if is_cut and request.transport is not None:
            await asyncio.sleep(0)
            request.transport.close()
        return answer


async def _begun(request: web.Request, headers: dict[str, str], status: int = 200) -> web.StreamResponse:
    answer = web.StreamResponse(status=status, headers=headers)
    await answer.prepare(request)
    return answer


@asynccontextmanager
async def faulty_web_server() -> AsyncIterator[FaultyWebServer]:
    """Run the server."""
    lying = FaultyWebServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", lying.answer)
    async with web_server(app) as lying.port:
        yield lying
