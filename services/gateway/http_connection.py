"""One connection of the HTTP server, with time limits: a client that sends too slowly, does not read, or stays idle is cut.

A client has `read_seconds` to send a request's line and headers, counted from the end of the last response. If a client leaves a response
unread for `write_seconds`, the connection is cut. The parser (httptools) bounds neither the bytes of headers nor the requests that are sent
ahead, so the connection does.
"""

import asyncio
import socket
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from services.gateway.config import GatewaySettings
from services.gateway.connection_places import ConnectionPlaces, Place
from services.gateway.deadlines import Deadlines

HEADER_BYTES: Final = 32_768
"""The greatest size in bytes of a request's line and headers together; larger requests are refused. The same limit holds for trailers."""
PIPELINED: Final = 16
"""The most requests that a client may send before the response to an earlier one is complete. Further ones cut the connection."""
SEND_BUFFER_BYTES: Final = 65_536
"""The size in bytes of the socket's send buffer for a long-lived response. Linux allocates twice as much."""
KEY: Final = "wms.connection"
"""The key in a request's ASGI scope under which endpoints find their `BoundedConnection`."""


class ConnectionBounds:
    """The limits of all connections: how many there may be, and for how long a client may be idle or leave a response unread."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.read_seconds = settings.read_seconds
        self.asking: Deadlines[BoundedConnection] = Deadlines(settings.read_seconds, BoundedConnection.cut)
        """The deadlines to send the next request's headers."""
        self.reading: Deadlines[BoundedConnection] = Deadlines(settings.write_seconds, BoundedConnection.cut)
        """The deadlines to read the response."""
        # Behind a proxy all connections have the proxy's address.
        of_address = None if settings.behind_proxy else settings.address_connections
        self.places = ConnectionPlaces(settings.connections, of_address)


class BoundedConnection(HttpToolsProtocol):
    """An HTTP/1.1 connection with two deadlines: to send the next request's headers, and to read the response.

    Endpoints find it in a request's scope, under `KEY`.
    """

    def __init__(self, bounds: ConnectionBounds, place: Place, *server: Any) -> None:
        """Make a connection in a place; `server` are the arguments of uvicorn's own class."""
        super().__init__(*server)
        self._bounds = bounds
        self._place = place
        self._is_known = False
        self._unparsed_bytes = 0
        """The bytes received since headers were last complete, or a piece of a body was parsed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Start the deadline for the first request."""
        super().connection_made(transport)
        self._place.end = self.abort
        self._place.is_idle = lambda: not self._is_responding
        self._bounds.asking.set(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop both deadlines, and free the connection's place."""
        self._bounds.places.leave(self._place)
        self._bounds.asking.lift(self)
        self._bounds.reading.lift(self)
        super().connection_lost(exc)
        # It is freed with its last task, and need not wait for the garbage collector: no cycle leads back to it.
        self._place.end, self._place.is_idle = lambda: None, lambda: False
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        self.cycle = None  # type: ignore[assignment]  # as in uvicorn
        self.scope = {}  # type: ignore[typeddict-item]

    def data_received(self, data: bytes) -> None:
        """Parse what was received; refuse headers that are too large. Stop the deadline for the headers once they are complete."""
        if self.transport.is_closing():
            return
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response(_TOO_LARGE)
        self._wait_for_request()

    def on_message_begin(self) -> None:
        """Begin a request's scope, in which endpoints find this connection."""
        super().on_message_begin()
        self.scope[KEY] = self  # type: ignore[typeddict-unknown-key]

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
            self.cut()
        else:
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        """Start the deadline for reading, because the send buffer is full."""
        super().pause_writing()
        self._bounds.reading.set(self)

    def resume_writing(self) -> None:
        """Stop the deadline for reading, because the client has read enough of the response."""
        super().resume_writing()
        self._bounds.reading.lift(self)

    def know(self) -> None:
        """Count the connection as known, since its request has a valid token. It then keeps its place before strangers."""
        if not self._is_known:
            self._is_known = True
            self._bounds.places.know(self._place)

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
            self._bounds.asking.lift(self)
        elif not self.transport.is_closing():
            self._bounds.asking.set(self)

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _header_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def cut(self) -> None:
        """Close the connection at once, and count it as one that was ended because of a limit."""
        # Both deadlines may be over at the same time.
        self._bounds.asking.lift(self)
        self._bounds.reading.lift(self)
        self._bounds.places.cut += 1
        self.transport.abort()


_TOO_LARGE: Final = f"The request's line and headers are over {HEADER_BYTES:,} bytes."
