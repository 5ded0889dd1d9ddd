"""Questions over the web: hostile servers, and tokens that go over no open connection."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from tests.services.discovery.index_servers import IndexServers
from tests.services.discovery.questions import Clock, discovery, sites
from wms.discovery.discovery import Discovery
from wms.discovery.document import SIZE_LIMIT
from wms.discovery.http import Web
from wms.web import WebIdentity


async def _endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    while True:
        await answer.write(b"u=x " * 65_536)


async def _huge(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Length": str(SIZE_LIMIT + 1)})
    await answer.prepare(request)
    await asyncio.Event().wait()
    return answer


async def _compressed(_: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})


async def _elsewhere(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/good")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (_endless, "over 8,388,608 bytes"),
        (_huge, "8,388,609 bytes"),
        (_compressed, "compressed"),
        (_elsewhere, "302"),
        (b"<a><b>", "not XML"),
        (b"<html>busy</html>" * 9, "not XML"),
        (b'{"a":' * 100_000, "nested"),
        (b"\xff" * 1_000, "neither GLUE nor a list"),
    ],
)
async def test_a_hostile_server_is_refused_and_harms_no_other(
    servers: IndexServers, clock: Clock, answer: object, why: str
) -> None:
    servers.answers["bad"] = answer  # type: ignore[assignment] # a column of both kinds
    servers.describes("good", "good")
    async with discovery(clock) as finder:
        found = await finder.find([servers.index("bad"), servers.index("good")])
    assert sites(found) == ["good"]
    assert found.visits[0].outcome == "failed"
    assert why in found.visits[0].why
    assert servers.asked["good"] == 1


async def test_a_token_goes_over_no_open_connection(
    servers: IndexServers, clock: Clock, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret")
    servers.describes("i", "x")
    credential = WebIdentity(token_file=str(tmp_path / "token"))
    async with Discovery({"http": Web(credential, ["*"])}, clock=clock) as finder:
        assert sites(await finder.find([servers.index("i")])) == ["x"]
    assert "Authorization" not in servers.headers["i"]
