"""Whoever opens as many connections as there are keeps nobody of another address out."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest

from services.gateway.http_listener import listening
from tests.certificates import certificate
from tests.services.gateway.conftest import Door, a_gateway
from tests.system.place import Place
from tests.waiting import eventually
from wms.embedded.process import free_port

PLACES = 40
FLOODING = ("127.0.0.2", "127.0.0.3")


async def _hold(door: Door, address: str) -> None:
    """Open an idle connection from an address again and again, each as soon as the one before it is closed."""
    port = int(door.url.rpartition(":")[2])
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
            with contextlib.suppress(OSError):
                await reader.read()
            writer.close()


@contextlib.asynccontextmanager
async def flooded(door: Door) -> AsyncIterator[None]:
    flood = [asyncio.create_task(_hold(door, each)) for each in FLOODING for _ in range(PLACES)]
    try:
        await eventually(lambda: door.bounds.places.cut > PLACES and len(door.bounds.places) >= PLACES)
        yield
    finally:
        for each in flood:
            each.cancel()
        await asyncio.wait(flood)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_new_connections_of_others_come_through(place: Place, owner: str, scheme: str) -> None:
    cert, key = certificate(place.root / "tls")
    tls = scheme == "https"
    files = {"certificate": str(cert), "private_key": str(key)} if tls else {}
    trusted = ssl.create_default_context(cafile=str(cert)) if tls else True
    async with a_gateway(place, connections=PLACES, **files) as door:

        async def ask(session: aiohttp.ClientSession) -> int:
            url = f"{door.url}/api/v1/jobs/counts?everything=true"
            async with session.get(url, headers=door.headers(owner), ssl=trusted) as answer:
                await answer.read()
                return answer.status

        known = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1))
        assert await ask(known) == 200
        cut = door.bounds.places.cut
        async with flooded(door):
            for _ in range(10):
                async with aiohttp.ClientSession() as session:
                    assert await ask(session) == 200
            assert await ask(known) == 200
        assert known.connector is not None
        assert door.bounds.places.cut > cut
        await known.close()
        await eventually(lambda: not door.bounds.places)


async def test_a_name_is_listened_for_at_each_of_its_addresses() -> None:
    port = free_port()
    sockets = await listening("localhost", port, 8)
    assert {each.getsockname()[1] for each in sockets} == {port}
    with pytest.raises(OSError, match="in use"):
        await listening("127.0.0.1", port, 8)
    for each in sockets:
        each.close()
