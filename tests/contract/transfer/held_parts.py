"""A way to an S3 server on which parts of uploads wait until they are let through."""

import asyncio

import aiohttp
from aiohttp import web
from yarl import URL

MOST_BYTES = 32 * 1024 * 1024


class HeldParts:
    """Passes requests on to an S3 server as they came, so that their signatures hold, but holds those that bring a part."""

    def __init__(self, endpoint: str) -> None:
        self.waiting = 0
        """Parts that wait now."""
        self.most_waiting = 0
        self.go_on = asyncio.Event()
        """Once it is set, no part waits any more."""
        self.application = web.Application(client_max_size=MOST_BYTES)
        self.application.router.add_route("*", "/{path:.*}", self._pass_on)
        self._endpoint = endpoint

    async def _pass_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        if "partNumber" in request.query:
            await self._held()
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method,
                URL(self._endpoint + request.raw_path, encoded=True),
                headers=request.headers,
                data=body,
            ) as answer,
        ):
            headers = {
                name: answer.headers[name] for name in ("ETag", "Content-Type") if name in answer.headers
            }
            return web.Response(status=answer.status, body=await answer.read(), headers=headers)

    async def _held(self) -> None:
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        await self.go_on.wait()
        self.waiting -= 1
