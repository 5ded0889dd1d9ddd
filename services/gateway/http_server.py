"""The HTTP server of the gateway, run as one of the loops of the service's process. It starts and ends with that process."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import structlog
import uvicorn
from starlette.applications import Starlette

from services.gateway.config import GatewaySettings
from services.gateway.connection_places import Place
from services.gateway.http_connection import BoundedConnection, ConnectionBounds
from services.gateway.http_listener import HttpListener, listening
from wms.cancellation import to_its_end

log = structlog.get_logger()

SPARE_FILES = 500
"""How many open files the gateway allows itself beyond one for each connection and each transfer."""
GRACE_SECONDS = 3
"""How long requests may still take when the gateway shuts down, in seconds; after that they are cancelled."""


class HttpServer:
    """Serves an ASGI application over HTTP or HTTPS with uvicorn, until `run` is cancelled."""

    name = "http"

    def __init__(
        self,
        application: Starlette,
        settings: GatewaySettings,
        bounds: ConnectionBounds,
        end: Callable[[], None],
        release: Callable[[], Awaitable[None]],
    ) -> None:
        """Make a server that does not listen yet. It calls `end` when it begins to shut down, and `release` after it has ended."""
        config = uvicorn.Config(
            application,
            host=settings.host,
            port=settings.port,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=settings.behind_proxy,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_certfile=settings.certificate or None,
            ssl_keyfile=(settings.private_key or settings.certificate) or None,
        )
        self.bounds = bounds
        self._server = _Server(config, bounds)
        self._spare = SPARE_FILES + settings.transfers
        self._end = end
        self._release = release

    @property
    def is_listening(self) -> bool:
        """Whether the server accepts requests: it has started and does not shut down."""
        return self._server.started and not self._server.should_exit

    async def run(self) -> None:
        """Serve until cancelled. Then requests being handled have `GRACE_SECONDS` to complete."""
        places = self.bounds.places
        places.most = max(1, min(places.most, allow_files(places.most + self._spare) - self._spare))
        serving = asyncio.create_task(self._server.serve(), name="serve http")
        try:
            await asyncio.shield(serving)
        finally:
            await to_its_end(self._shut(serving))

    async def _shut(self, serving: asyncio.Task[None]) -> None:
        self._end()
        self._server.should_exit = True
        await asyncio.wait([serving])
        await self._release()


def allow_files(count: int) -> int:
    """Raise this process's limit on open files to `count`, or as far as the system allows, and return it. A lower result is logged."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < count:
        log.warning("too few files may be open", allowed=wanted, wanted=count)
    return wanted


class _Server(uvicorn.Server):
    """A uvicorn server that accepts connections by turns of their addresses.

    It installs no signal handlers, since the service's process has its own.
    """

    def __init__(self, config: uvicorn.Config, bounds: ConnectionBounds) -> None:
        super().__init__(config)
        self._bounds = bounds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, in place of uvicorn's own way, which takes connections as they come."""
        config = self.config
        found = sockets or await listening(config.host, config.port, config.backlog)
        servers: list[Any] = [
            HttpListener(found, self._bounds.places, self._protocol, config.ssl, self._bounds.read_seconds)
        ]
        self.servers = servers
        self.started = True

    def _protocol(self, place: Place) -> BoundedConnection:
        return BoundedConnection(self._bounds, place, self.config, self.server_state, self.lifespan.state)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
