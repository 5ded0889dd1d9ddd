"""The HTTP server of the gateway as a loop of its host: it begins to listen with the host, and ends with it."""

import asyncio
import contextlib
import resource
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import structlog
import uvicorn
from starlette.applications import Starlette

from services.gateway.config import GatewaySettings
from services.gateway.connection import ConnectionBounds

log = structlog.get_logger()

SPARE_FILES = 500
"""How many files the gateway opens beside its connections."""
HEADER_BYTES = 32_768
"""The greatest size in bytes of a request's line and headers together."""
GRACE_SECONDS = 3
"""Seconds for which requests under way may go on when the gateway ends."""


class HttpServer:
    """A loop that serves an application over HTTP until it is cancelled."""

    name = "http"

    def __init__(
        self,
        application: Starlette,
        settings: GatewaySettings,
        bounds: ConnectionBounds,
        end: Callable[[], None],
        release: Callable[[], Awaitable[None]],
    ) -> None:
        """`end` is called when the server is to end, `release` once it has ended."""
        # In Python, so that it can be bounded: headers in bytes by its parser, everything in time by `connection`.
        protocol: Any = bounds.protocol
        config = uvicorn.Config(
            application,
            host=settings.host,
            port=settings.port,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=settings.behind_proxy,
            limit_concurrency=settings.connections,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
            ssl_certfile=settings.certificate or None,
            ssl_keyfile=(settings.private_key or settings.certificate) or None,
        )
        self.bounds = bounds
        self._server = _Server(config)
        self._connections = settings.connections
        self._end = end
        self._release = release

    @property
    def is_listening(self) -> bool:
        """Whether the server accepts requests."""
        return self._server.started and not self._server.should_exit

    async def run(self) -> None:
        """Serve until cancelled. Then requests under way are answered first."""
        allow_files(self._connections + SPARE_FILES)
        serving = asyncio.create_task(self._server.serve(), name="serve http")
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self._end()
            self._server.should_exit = True
            await asyncio.wait([serving])
            raise
        finally:
            await self._release()


def allow_files(count: int) -> None:
    """Let this process open so many files, if the system allows it; each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < count:
        log.warning("too few files may be open", allowed=wanted, wanted=count)


class _Server(uvicorn.Server):
    """A server of uvicorn that leaves signals to its host."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
