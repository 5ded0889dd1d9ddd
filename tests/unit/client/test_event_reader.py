"""Events of a gateway, as signals."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.web_server import web_server
from wms.client.event_reader import EventReader
from wms.errors import Unavailable


@asynccontextmanager
async def served(handler: Any) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    app = web.Application()
    app.router.add_get("/events", handler)
    async with web_server(app) as port, aiohttp.ClientSession() as session:
        yield session, f"http://127.0.0.1:{port}/events"


async def test_facts_are_read_and_the_end_of_the_stream_is_told() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(b'id: 1\n\nid: 2\nevent: job-event\ndata: {"a": 1}\n\n')
        return answer

    async with served(stream) as (session, url):
        reader = EventReader(session, url, {})
        await reader.start()
        (event,) = await reader.poll(30, 10)
        assert event.payload == b'{"a": 1}'
        with pytest.raises(Unavailable, match="ended"):
            await reader.poll(30, 10)
        await reader.close()


async def test_nothing_comes_in_time() -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await asyncio.sleep(3_600)
        return answer

    async with served(silent) as (session, url):
        reader = EventReader(session, url, {})
        await reader.start()
        assert await reader.poll(0.01, 10) == []
        await reader.close()


async def test_a_gateway_that_refuses_has_no_events() -> None:
    async def refuses(request: web.Request) -> web.StreamResponse:
        return web.Response(status=401)

    async with served(refuses) as (session, url):
        with pytest.raises(Unavailable, match="401"):
            await EventReader(session, url, {}).start()
