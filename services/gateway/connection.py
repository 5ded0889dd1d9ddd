"""One connection of the HTTP server, bounded in time: who sends or reads too slowly, or does nothing, is cut off.

Between two requests, and while a request's line and headers come, the sender has `read_seconds`. An answer that the reader does not take
goes no further, and after `write_seconds` the connection is cut, so that nothing is held for who never reads.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from services.gateway.config import GatewaySettings
from services.gateway.gate import network_of

SEND_BUFFER_BYTES: Final = 65_536
"""How much of a long-lived answer the kernel keeps for a reader, at most about twice as much."""
KEY: Final = "wms.connection"
"""The key of the connection in the scope of each of its requests."""


class ConnectionBounds:
    """How long connections may stand still, and how many an address may have open."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.read_seconds = settings.read_seconds
        self.write_seconds = settings.write_seconds
        # Behind a proxy all come from one address.
        self.of_address = None if settings.behind_proxy else settings.address_connections
        self.open = Counter[str]()
        self.cut = 0
        """The number of connections that were cut off."""

    def protocol(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "BoundedConnection":
        """Return the protocol of a new connection, for the HTTP server."""
        return BoundedConnection(self, config, server_state, app_state, _loop)

    def enter(self, address: str) -> bool:
        """Count a connection of an address in. Return whether it has no more than it may."""
        self.open[address] += 1
        return self.of_address is None or self.open[address] <= self.of_address

    def leave(self, address: str) -> None:
        """Count a connection of an address out."""
        self.open[address] -= 1
        if not self.open[address]:
            del self.open[address]


class BoundedConnection(H11Protocol):
    """A connection with two deadlines: for the next request's headers, and for the answer's reader.

    Endpoints find it in the scope of a request, by `KEY`.
    """

    def __init__(self, bounds: ConnectionBounds, *server: Any) -> None:
        super().__init__(*server)
        self._bounds = bounds
        application = self.app

        async def with_connection(scope: Any, receive: Any, send: Any) -> None:
            scope[KEY] = self
            await application(scope, receive, send)

        self.app = with_connection
        self._asking = _Deadline(self.loop, bounds.read_seconds, self._cut)
        self._reading = _Deadline(self.loop, bounds.write_seconds, self._cut)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for the first request; an address with too many connections is cut off at once."""
        super().connection_made(transport)
        if self._bounds.enter(self._address):
            self._asking.set()
        else:
            self._cut()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._bounds.leave(self._address)
        self._asking.lift()
        self._reading.lift()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle what came."""
        super().handle_events()
        self._wait_for_request()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._wait_for_request()

    def pause_writing(self) -> None:
        """Begin to wait for the reader, who does not take what was sent."""
        super().pause_writing()
        self._reading.set()

    def resume_writing(self) -> None:
        """Go on, as the reader took what was sent."""
        super().resume_writing()
        self._reading.lift()

    def abort(self) -> None:
        """Close the connection at once, with whatever its reader did not take."""
        self.transport.abort()

    def bound_send_buffer(self) -> None:
        """Let the kernel keep only little of an answer for a reader that does not take it."""
        if (sock := self.transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)

    def _wait_for_request(self) -> None:
        """Let the deadline run while no request is under way; what comes in pieces meanwhile does not put it off."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._asking.lift()
        elif not self.transport.is_closing():
            self._asking.set()

    @property
    def _address(self) -> str:
        return network_of(self.client[0] if self.client else "")

    def _cut(self) -> None:
        self._bounds.cut += 1
        self.transport.abort()


class _Deadline:
    """Calls `act` some seconds after it was set, unless it was lifted before. Set again meanwhile, it stays as it was."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, act: Callable[[], None]) -> None:
        self._set = partial(loop.call_later, seconds, act)
        self._timer: asyncio.TimerHandle | None = None

    def set(self) -> None:
        if self._timer is None:
            self._timer = self._set()

    def lift(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
