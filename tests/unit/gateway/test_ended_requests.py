"""A request that the gateway's end cuts off is answered: ask again."""

import asyncio
from typing import Any

from services.gateway.application import _refused
from services.gateway.ended_requests import EndedRequestsMiddleware

SCOPE: Any = {"type": "http", "method": "GET", "path": "/", "headers": []}


async def cancelled(*, begun: bool) -> list[Any]:
    """Cancel a request, before its response has begun or after; return what was sent."""
    sent: list[Any] = []
    waiting = asyncio.Event()

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        waiting.set()
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    middleware = EndedRequestsMiddleware(application, _refused)
    task = asyncio.create_task(middleware(SCOPE, None, send))  # type: ignore[arg-type]  # nothing is received
    await waiting.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() == begun
    return sent


async def test_it_is_told_to_ask_again() -> None:
    start, body = await cancelled(begun=False)
    assert start["status"] == 503
    assert dict(start["headers"])[b"retry-after"] == b"2"
    assert b"the gateway ends" in body["body"]


async def test_a_response_that_has_begun_is_not_answered_twice() -> None:
    (start,) = await cancelled(begun=True)
    assert start["status"] == 200
