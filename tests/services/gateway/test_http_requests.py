"""What a connection accepts of HTTP: headers and trailers of bounded size, few requests ahead, and one response to each."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from services.gateway.config import GatewaySettings
from services.gateway.http_connection import HEADER_BYTES, PIPELINED, ConnectionBounds
from services.gateway.http_server import HttpServer
from tests.waiting import eventually
from wms.embedded.process import free_port

Endpoint = Callable[[Request], Awaitable[Response]]
LINE = b"POST / HTTP/1.1\r\nHost: x\r\n"
EMPTY = b"Content-Length: 0\r\n\r\n"
LAST = b"Connection: close\r\n" + EMPTY
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
ACCEPTED = b"HTTP/1.1 200"


class Served(NamedTuple):
    """A connection to a server, and the server's bounds."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    bounds: ConnectionBounds

    async def send(self, *pieces: bytes) -> None:
        """Send each piece by itself, until the connection is closed."""
        with contextlib.suppress(OSError):
            for piece in pieces:
                self.writer.write(piece)
                await self.writer.drain()

    async def received(self) -> bytes:
        """Return all that comes until the server closes the connection."""
        found = b""
        with contextlib.suppress(OSError):
            async with asyncio.timeout(60):
                while piece := await self.reader.read(65_536):
                    found += piece
        return found


@contextlib.asynccontextmanager
async def served(endpoint: Endpoint) -> AsyncIterator[Served]:
    """Serve an endpoint, and connect to it."""
    settings = GatewaySettings(port=free_port())
    bounds = ConnectionBounds(settings)
    application = Starlette(routes=[Route("/", endpoint, methods=["POST"])])
    server = HttpServer(application, settings, bounds, lambda: None, _nothing)
    serving = asyncio.create_task(server.run())
    await eventually(lambda: server.is_listening, within=30)
    reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
    yield Served(reader, writer, bounds)
    writer.close()
    serving.cancel()
    await asyncio.wait([serving])


async def _nothing() -> None:
    """Release nothing."""


async def names(request: Request) -> Response:
    """Return the names of the headers, once the body and its trailers are read."""
    body = await request.body()
    return PlainTextResponse(f"{len(body)} bytes, {' '.join(request.headers)}")


async def never(request: Request) -> Response:
    """Return no response as long as the client is there."""
    await request.body()
    await request.receive()
    return PlainTextResponse("gone")


async def endless(_: Request) -> Response:
    """Return a response that begins and does not end."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"begun"
        await asyncio.Event().wait()

    return StreamingResponse(pieces())


@pytest.mark.parametrize(
    "headers",
    [
        b"GET /" + b"x" * 2 * HEADER_BYTES,
        LINE + b"X: " + b"y" * 2 * HEADER_BYTES,
        LINE + b"y" * 2 * HEADER_BYTES,
        LINE + b"X: y\r\n" * HEADER_BYTES,
    ],
    ids=["path", "value", "name", "lines"],
)
async def test_headers_without_end_are_refused(headers: bytes) -> None:
    async with served(names) as at:
        await at.send(headers)
        assert (await at.received()).startswith(b"HTTP/1.1 400")


async def test_large_headers_that_come_whole_are_refused() -> None:
    async with served(names) as at:
        await at.send(LINE + b"X: " + b"y" * HEADER_BYTES + b"\r\n" + LAST)
        assert (await at.received()).startswith(b"HTTP/1.1 400")


async def test_headers_just_small_enough_are_accepted() -> None:
    async with served(names) as at:
        await at.send(LINE + b"X: " + b"y" * (HEADER_BYTES - 200) + b"\r\n" + LAST)
        assert (await at.received()).startswith(ACCEPTED)


async def test_a_large_body_is_no_large_header() -> None:
    async with served(names) as at:
        head = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (10 * HEADER_BYTES)
        await at.send(LINE + head + b"z" * 10 * HEADER_BYTES)
        assert b"327680 bytes" in await at.received()


@pytest.mark.parametrize("piece", [b"X: y\r\n" * 1_000, b"y" * 10_000], ids=["lines", "one line"])
async def test_trailers_without_end_are_refused(piece: bytes) -> None:
    async with served(names) as at:
        await at.send(LINE + CHUNKED + b"0\r\nX: ", *[piece] * 100)
        assert ACCEPTED not in await at.received()


async def test_a_chunk_extension_without_end_is_refused() -> None:
    async with served(names) as at:
        await at.send(LINE + CHUNKED + b"1;", *[b"y" * 10_000] * 100)
        assert ACCEPTED not in await at.received()


async def test_a_trailer_is_no_header() -> None:
    async with served(names) as at:
        await at.send(LINE + CHUNKED + b"0\r\n", b"Authorization: Bearer x\r\n\r\n", LINE + LAST)
        read = await at.received()
        assert b"1 bytes" in read
        assert b"authorization" not in read


async def test_requests_sent_ahead_get_their_responses() -> None:
    async with served(names) as at:
        await at.send((LINE + EMPTY) * PIPELINED + LINE + LAST)
        assert (await at.received()).count(ACCEPTED) == PIPELINED + 1


async def test_too_many_requests_sent_ahead_are_cut() -> None:
    async with served(never) as at:
        await at.send((LINE + EMPTY) * 100 * PIPELINED)
        assert await at.received() == b""
        assert at.bounds.places.cut == 1


@pytest.mark.parametrize(
    "request_line",
    [
        LINE + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        LINE + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        LINE + b"Content-Length: -1\r\n\r\n",
        LINE + b"X : y\r\n\r\n",
        LINE + b"X: \0\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
    ids=["two lengths", "another length", "below 0", "blank", "zero", "connect", "not ascii", "tls"],
)
async def test_what_is_no_http_is_refused(request_line: bytes) -> None:
    async with served(names) as at:
        await at.send(request_line)
        assert (await at.received()).startswith(b"HTTP/1.1 400")


async def test_what_is_no_http_gets_no_response_within_another() -> None:
    async with served(endless) as at:
        await at.send(LINE + EMPTY)
        await at.reader.readuntil(b"begun")
        await at.send(b"no http\r\n\r\n")
        assert b"HTTP/1.1 400" not in await at.received()
        assert at.bounds.places.cut == 1
