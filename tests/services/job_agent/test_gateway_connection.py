"""A pilot's connection to a gateway: by the node's proxy, by authorities of its own, to nowhere else, and bounded."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from services.job_agent import gateway_connection
from services.job_agent.gateway_connection import GatewayConnection, events
from tests.certificates import certificate
from wms.embedded.process import free_port
from wms.errors import Rejected, Unavailable
from wms.runtime.pilot_config import GatewayAccess

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def served(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
    yield port
    await runner.cleanup()


async def taken(request: web.Request) -> web.Response:
    return web.json_response({"taken": 1, "path": request.path})


async def test_a_private_authority_is_trusted_if_the_pilot_has_its_certificate(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path / "tls")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)
    async for port in served(taken, tls):
        url = f"https://localhost:{port}"
        trusting = GatewayConnection(GatewayAccess(url=url, authorities=cert.read_text()), "p-1")
        assert b"/api/v1/pilots/p-1/messages" in await trusting.post("/messages", b"{}", 10)
        await trusting.close()
        other = GatewayConnection(GatewayAccess(url=url), "p-1")
        with pytest.raises(Unavailable, match="certificate"):
            await other.post("/messages", b"{}", 10)
        await other.close()


async def test_the_proxy_of_the_node_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    connection = GatewayConnection(GatewayAccess(url="https://gateway.example.org:8443"), "p-1")
    with pytest.raises(Unavailable):
        await connection.post("/messages", b"{}", 10)
    await connection.close()
    server.close()
    assert asked == [b"CONNECT gateway.example.org:8443 HTTP/1.1\r\n"]


async def test_a_redirection_is_not_followed_with_the_token() -> None:
    seen: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async for port in served(elsewhere):
        connection = GatewayConnection(GatewayAccess(url=f"http://127.0.0.1:{port}"), "p-1")
        with pytest.raises(Rejected):
            await connection.post("/messages", b"{}", 10, "a.b.c")
        with pytest.raises(Rejected):
            await connection.stream("/orders", "a.b.c")
        await connection.close()
    assert seen == ["/api/v1/pilots/p-1/messages", "/api/v1/pilots/p-1/orders"]


async def test_an_endless_line_and_an_endless_answer_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_connection, "LINE_LIMIT", 10_000)
    monkeypatch.setattr(gateway_connection, "ANSWER_LIMIT", 10_000)

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b": \n\ndata: {}\n\n")
        for _ in range(100):
            await answer.write(b"x" * 1_000)
        return answer

    async for port in served(endless):
        connection = GatewayConnection(GatewayAccess(url=f"http://127.0.0.1:{port}"), "p-1")
        async with await connection.stream("/orders", "a.b.c") as answer:
            found = events(answer)
            assert [await anext(found), await anext(found)] == [b"", b"{}"]
            with pytest.raises(Unavailable, match="line"):
                await anext(found)
        with pytest.raises(Unavailable, match="over 10,000 bytes"):
            await connection.post("/messages", b"{}", 10)
        await connection.close()


async def test_what_is_being_sent_when_the_connection_is_closed_counts_as_not_sent() -> None:
    async for port in served(taken):
        # At each turn of the loop until the request is sent: a link that breaks is closed whenever it is.
        for turns in range(20):
            connection = GatewayConnection(GatewayAccess(url=f"http://127.0.0.1:{port}"), "p-1")
            sending = asyncio.create_task(connection.post("/messages", b"{}", 10))
            for _ in range(turns):
                await asyncio.sleep(0)
            await connection.close()
            try:
                await sending
            except Unavailable:
                continue
