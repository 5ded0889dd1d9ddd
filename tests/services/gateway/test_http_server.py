"""The server: TLS by files, and an end that waits for nobody."""

import asyncio
import ssl
import time

import aiohttp

from tests.certificates import certificate
from tests.services.gateway.conftest import a_gateway
from tests.system.place import Place


async def test_with_a_certificate_it_speaks_https_alone(place: Place, owner: str) -> None:
    cert, key = certificate(place.root / "tls")
    async with a_gateway(place, certificate=str(cert), private_key=str(key)) as door:
        trusted = ssl.create_default_context(cafile=str(cert))
        url = f"{door.url}/api/v1/jobs?everything=true"
        assert url.startswith("https://")
        async with door.session.get(url, headers=door.headers(owner), ssl=trusted) as answer:
            assert answer.status == 200
        try:
            async with door.session.get(url.replace("https", "http"), headers=door.headers(owner)) as answer:
                raise AssertionError(f"answered {answer.status} in clear")
        except aiohttp.ClientError:
            pass


async def test_an_open_stream_does_not_hold_up_its_end(place: Place, owner: str) -> None:
    async with a_gateway(place) as door:
        following = await door.session.get(f"{door.url}/api/v1/events", headers=door.headers(owner))
        assert await following.content.readline()
        ended_at = time.monotonic()
    assert time.monotonic() - ended_at < 20
    await asyncio.sleep(0)
    following.close()
