"""One connection of the HTTP server, with time limits: a client that sends too slowly, does not read, or stays idle is cut.

A client has `read_seconds` to send a request's line and headers, counted from the end of the last response. If a client leaves a response
unread for `write_seconds`, the connection is cut. The parser (httptools) bounds neither the bytes of headers nor the requests that are sent
ahead, so the connection does.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from services.gateway.authentication import network_of
from services.gateway.config import GatewaySettings

HEADER_BYTES: Final = 32_768
"""The greatest size in bytes of a request's line and headers together; larger requests are refused. The same limit holds for trailers."""
PIPELINED: Final = 16
"""The most requests that a client may send before the response to an earlier one is complete. Further ones cut the connection."""
SEND_BUFFER_BYTES: Final = 65_536
"""The size in bytes of the socket's send buffer for a long-lived response. Linux allocates twice as much."""
KEY: Final = "wms.connection"
"""The key in a request's ASGI scope under which endpoints find their `BoundedConnection`."""


class ConnectionBounds:
    """The limits of all connections: how long a client may be idle or leave a response unread, and how many connections one address may have."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.read_seconds = settings.read_seconds
        self.write_seconds = settings.write_seconds
        # Behind a proxy all connections have the proxy's address.
        self.of_address = None if settings.behind_proxy else settings.address_connections
        self.open = Counter[str]()
        self.cut = 0
        """The number of connections that were cut because of a limit, since the start."""

    def protocol(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "BoundedConnection":
        """Return the protocol object of a new connection. uvicorn calls this with its own configuration and state."""
        return BoundedConnection(self, config, server_state, app_state, _loop)

    def enter(self, address: str) -> bool:
        """Count a new connection of an address. Return whether the address is within its limit; behind a proxy always true."""
        self.open[address] += 1
        return self.of_address is None or self.open[address] <= self.of_address

    def leave(self, address: str) -> None:
        """Count a closed connection of an address."""
        self.open[address] -= 1
        if not self.open[address]:
            del self.open[address]


class BoundedConnection(HttpToolsProtocol):
    """An HTTP/1.1 connection with two deadlines: to send the next request's headers, and to read the response.

    Endpoints find it in a request's scope, under `KEY`.
    """

    def __init__(self, bounds: ConnectionBounds, *server: Any) -> None:
        super().__init__(*server)
        self._bounds = bounds
        application = self.app

        async def with_connection(scope: Any, receive: Any, send: Any) -> None:
            scope[KEY] = self
            await application(scope, receive, send)

        self.app = with_connection
        self._unparsed_bytes = 0
        """The bytes received since headers were last complete, or a piece of a body was parsed."""
        self._asking = _Deadline(self.loop, bounds.read_seconds, self._cut)
        self._reading = _Deadline(self.loop, bounds.write_seconds, self._cut)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Start the deadline for the first request; cut the connection at once if its address has too many."""
        super().connection_made(transport)
        if self._bounds.enter(self._address):
            self._asking.set()
        else:
            self._cut()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop both deadlines, and no longer count the connection for its address."""
        self._bounds.leave(self._address)
        self._asking.lift()
        self._reading.lift()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what was received; refuse headers that are too large. Stop the deadline for the headers once they are complete."""
        if self.transport.is_closing():
            return
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response(_TOO_LARGE)
        self._wait_for_request()

    def on_headers_complete(self) -> None:
        """Begin to handle a request. Raise ValueError, upon which the parser stops, if its headers are too large or too many requests wait."""
        if self._unparsed_bytes > HEADER_BYTES and self._header_bytes() > HEADER_BYTES:
            raise ValueError(_TOO_LARGE)
        if len(self.pipeline) >= PIPELINED:
            raise ValueError("too many requests are sent ahead")
        self._unparsed_bytes = 0
        super().on_headers_complete()
        # Trailers, which follow a body, go into a list that nobody reads.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        """Keep a piece of a request's body until the endpoint takes it."""
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Start the deadline for the next request, as the response is complete."""
        super().on_response_complete()
        self._wait_for_request()

    def send_400_response(self, msg: str) -> None:
        """Refuse what was received, and close the connection. Cut it without a word if a response is being sent or others come first."""
        if self.pipeline or (self._is_responding and self.cycle.response_started):
            self._cut()
        else:
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        """Start the deadline for reading, because the send buffer is full."""
        super().pause_writing()
        self._reading.set()

    def resume_writing(self) -> None:
        """Stop the deadline for reading, because the client has read enough of the response."""
        super().resume_writing()
        self._reading.lift()

    def abort(self) -> None:
        """Close the connection at once, and discard what was not sent yet."""
        self.transport.abort()

    def bound_send_buffer(self) -> None:
        """Limit the socket's send buffer to `SEND_BUFFER_BYTES`, so that little memory is held for a client that does not read."""
        if (sock := self.transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)

    def _wait_for_request(self) -> None:
        """Start the deadline for the next request's headers, unless a request is being handled. Partial headers do not extend it."""
        if self._is_responding:
            self._asking.lift()
        elif not self.transport.is_closing():
            self._asking.set()

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _header_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    @property
    def _address(self) -> str:
        return network_of(self.client[0] if self.client else "")

    def _cut(self) -> None:
        # Both deadlines may be over at the same time.
        self._asking.lift()
        self._reading.lift()
        self._bounds.cut += 1
        self.transport.abort()


_TOO_LARGE: Final = f"The request's line and headers are over {HEADER_BYTES:,} bytes."


class _Deadline:
    """A timer that calls `act` a fixed number of seconds after `set`, unless `lift` cancels it first. A `set` while it runs changes nothing."""

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
