"""Clients follow the gateway to its store, but never with their token, and never without TLS to another machine."""

from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from wms.errors import Rejected, Unavailable
from wms.gateway.direct_download import download

HEADERS = {"Authorization": "Bearer secret", "Range": "bytes=1-", "Content-Type": "application/gzip"}
TIMEOUT = aiohttp.ClientTimeout(total=10)


async def fetched(place: str | None, status: int = 206) -> tuple[bytes, list[dict[str, str]]]:
    """Download from a gateway that sends us to `place` (None: to a store here). Return the bytes, and the headers of each request."""
    seen: list[dict[str, str]] = []

    async def gateway(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        return web.Response(
            status=307, headers={"Location": place or f"{request.url.origin()}/store?signed=yes"}
        )

    async def store(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        assert request.query["signed"] == "yes"
        return web.Response(status=status, body=b"bytes")

    application = web.Application()
    application.router.add_get("/gateway", gateway)
    application.router.add_get("/store", store)
    async with (
        TestServer(application) as server,
        aiohttp.ClientSession() as session,
        download(session, str(server.make_url("/gateway")), HEADERS, TIMEOUT) as answer,
    ):
        return await answer.read(), seen


async def test_the_token_goes_to_the_gateway_alone() -> None:
    read, (first, second) = await fetched(None)
    assert read == b"bytes"
    assert (first["Authorization"], first["Prefer"]) == ("Bearer secret", "redirect")
    assert not {"Authorization", "Prefer", "Content-Type"} & set(second)
    assert second["Range"] == "bytes=1-"


async def test_a_url_that_expired_is_asked_for_anew() -> None:
    with pytest.raises(Unavailable, match="status 403"):
        await fetched(None, 403)


@pytest.mark.parametrize(
    "place", ["http://store.example.org/x?signed=yes", "file:///etc/passwd", "/relative"]
)
async def test_no_other_place_is_followed(place: Any) -> None:
    with pytest.raises(Rejected, match="without TLS"):
        await fetched(place)
