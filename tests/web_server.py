"""A web server of a test, in its own event loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def web_server(application: web.Application) -> AsyncIterator[int]:
    """Serve an application on the loopback interface, and yield the port. At the end, responses that go on are cut."""
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
