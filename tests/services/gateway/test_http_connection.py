"""Connections are bounded in time, both ways, and in number."""

import asyncio
import contextlib
import gc
import socket
import ssl
from collections.abc import AsyncIterator, Callable

import pytest

from services.gateway.http_connection import PIPELINED, BoundedConnection
from tests.certificates import certificate
from tests.services.gateway.conftest import Door, a_gateway
from tests.system.place import Place
from tests.waiting import eventually

SHORT = 0.5
PATIENCE = 20.0


@contextlib.asynccontextmanager
async def impatient(place: Place, **said: object) -> AsyncIterator[Door]:
    async with a_gateway(place, read_seconds=SHORT, write_seconds=SHORT, **said) as door:
        yield door


async def opened(door: Door) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(door.url.rpartition(":")[2]))


async def _drip(writer: asyncio.StreamWriter, piece: Callable[[int], bytes]) -> None:
    """Send a little now and then, until cut off."""
    with contextlib.suppress(OSError):
        for n in range(10_000):
            writer.write(piece(n))
            await writer.drain()
            await asyncio.sleep(SHORT / 5)


async def cut_off(reader: asyncio.StreamReader) -> bytes:
    """Return all that comes before the end."""
    read = b""
    with contextlib.suppress(OSError):
        async with asyncio.timeout(PATIENCE):
            while piece := await reader.read(65_536):
                read += piece
    return read


@pytest.mark.parametrize("before", [b"", b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n"])
async def test_headers_that_drip_are_cut_off(place: Place, before: bytes) -> None:
    async with impatient(place) as door:
        reader, writer = await opened(door)
        writer.write(before + b"GET /api/v1/health HTTP/1.1\r\n")
        dripping = asyncio.create_task(_drip(writer, lambda n: b"X-%d: y\r\n" % n))
        read = await cut_off(reader)
        assert read.count(b"HTTP/1.1 200") == (1 if before else 0)
        dripping.cancel()
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /api/v1/hea",
        b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n" * 3,
    ],
    ids=["nothing", "a half line", "a request", "three at once"],
)
async def test_a_connection_that_ends_is_freed_without_the_garbage_collector(
    place: Place, sent: bytes
) -> None:
    gc.collect()
    gc.disable()
    try:
        async with a_gateway(place) as door:
            for _ in range(5):
                reader, writer = await opened(door)
                writer.write(sent)
                if b"\r\n\r\n" in sent:
                    assert await reader.readline()
                writer.close()
                await writer.wait_closed()
            await eventually(lambda: not connections(), PATIENCE)
    finally:
        gc.enable()


def connections() -> list[BoundedConnection]:
    return [each for each in gc.get_objects() if isinstance(each, BoundedConnection)]


async def test_who_sends_nothing_is_cut_off(place: Place) -> None:
    async with impatient(place) as door:
        reader, writer = await opened(door)
        assert await cut_off(reader) == b""
        writer.close()


async def test_a_body_that_drips_is_refused_and_its_rest_not_waited_for(place: Place, owner: str) -> None:
    async with impatient(place) as door:
        reader, writer = await opened(door)
        token = door.headers(owner)["Authorization"]
        head = f"POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n".encode())
        dripping = asyncio.create_task(_drip(writer, lambda _: b" "))
        read = await cut_off(reader)
        assert read.startswith(b"HTTP/1.1 408")
        assert b"BODY_TOO_SLOW" in read
        dripping.cancel()
        writer.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_who_never_reads_an_answer_is_cut_off(place: Place, scheme: str) -> None:
    tls = scheme == "https"
    cert, key = certificate(place.root / "tls")
    files = {"certificate": str(cert), "private_key": str(key)} if tls else {}
    async with impatient(place, **files) as door:
        trusted = ssl.create_default_context(cafile=str(cert)) if tls else None
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sock.setblocking(False)
        port = int(door.url.rpartition(":")[2])
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(
            sock=sock, ssl=trusted, server_hostname="localhost" if tls else None, limit=1_024
        )
        # Without reading: as many answers as make the buffers full.
        request = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
        writer.write(request * PIPELINED)
        await writer.drain()
        await eventually(lambda: door.bounds.places.cut == 1 and not door.bounds.places, PATIENCE)
        writer.close()
        # A response to each would be more.
        assert len(await cut_off(reader)) < PIPELINED * 20_000


async def test_an_address_has_so_many_connections(place: Place) -> None:
    async with a_gateway(place, address_connections=5) as door:
        held = [await opened(door) for _ in range(5)]
        await eventually(lambda: len(door.bounds.places) == 5)
        reader, writer = await opened(door)
        assert await cut_off(reader) == b""
        writer.close()
        for _, each in held:
            each.close()
        await eventually(lambda: len(door.bounds.places) == 0)
        async with door.session.get(f"{door.url}/api/v1/health") as answer:
            assert answer.status == 200


async def test_an_honest_connection_is_used_again(place: Place, owner: str) -> None:
    async with impatient(place) as door:
        for _ in range(3):
            status, _ = await door.ask(owner, "GET", "/sites")
            assert status == 200
        assert door.bounds.places.cut == 0
