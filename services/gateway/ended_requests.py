"""Answers requests that the gateway's end cuts off: their clients are told to ask again, which another gateway or the next process answers."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wms.errors import Unavailable, WmsError


class EndedRequestsMiddleware:
    """ASGI middleware that answers a request which is cancelled before its response has begun, by the response of `refused` to Unavailable."""

    def __init__(self, app: ASGIApp, refused: Callable[[Request, WmsError], Awaitable[Response]]) -> None:
        self._app = app
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application. The response to a cancelled request is its end, so that no cancellation is raised then."""
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            if has_begun:
                raise
            response = await self._refused(Request(scope), Unavailable("the gateway ends"))
            await response(scope, receive, send)
