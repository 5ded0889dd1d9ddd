"""Accepts connections for the HTTP server. Their addresses take turns, before anything else is done for a connection, TLS included."""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from services.gateway.authentication import network_of
from services.gateway.connection_places import ConnectionPlaces, Place
from wms.runtime.guarded_loop import keep_alive

AT_ONCE: Final = 32
"""How many connections are accepted, or begun, before other callbacks of the event loop run."""
AGAIN_SECONDS: Final = 0.1
"""Seconds without accepting after the system has refused to open one more file."""

Protocol = Callable[[Place], asyncio.Protocol]


class HttpListener:
    """Listening sockets, and the connections that are accepted and not yet open."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        places: ConnectionPlaces,
        protocol: Protocol,
        tls: ssl.SSLContext | None,
        seconds: float,
    ) -> None:
        """Accept connections at once; `seconds` bounds the handshake of TLS. It must be made while the event loop runs."""
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._places = places
        self._protocol = protocol
        self._tls = tls
        self._seconds = seconds if tls is not None else None
        self._accepted: dict[str, deque[tuple[socket.socket, Place]]] = {}
        """Accepted connections, by address. The address that comes first has the next turn."""
        self._opening: set[asyncio.Task[None]] = set()
        for each in sockets:
            self._loop.add_reader(each, self._accept, each)

    def close(self) -> None:
        """Stop accepting; connections that are not open yet are closed."""
        for each in self._sockets:
            self._loop.remove_reader(each)
            each.close()
        for waiting in self._accepted.values():
            for sock, place in waiting:
                sock.close()
                self._places.leave(place)
        self._accepted.clear()
        for task in self._opening:
            task.cancel()

    async def wait_closed(self) -> None:
        """Return once no connection is being opened."""
        if self._opening:
            await asyncio.wait(self._opening)

    def _accept(self, listening: socket.socket) -> None:
        try:
            for _ in range(AT_ONCE):
                sock, peer = listening.accept()
                self._enter(sock, network_of(peer[0]))
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            # No file can be opened. It would be asked for again without a pause.
            self._loop.remove_reader(listening)
            self._loop.call_later(AGAIN_SECONDS, self._accept_again, listening)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            self._loop.add_reader(listening, self._accept, listening)

    def _enter(self, sock: socket.socket, address: str) -> None:
        place = self._places.enter(address, lambda: _end(sock))
        if place is None:
            sock.close()
            return
        if not self._accepted:
            self._loop.call_soon(self._open_some)
        self._accepted.setdefault(address, deque()).append((sock, place))

    def _open_some(self) -> None:
        for _ in range(AT_ONCE):
            if not self._accepted:
                return
            address = next(iter(self._accepted))
            waiting = self._accepted.pop(address)
            task = self._loop.create_task(self._open(*waiting.popleft()), name="open a connection")
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
            if waiting:
                self._accepted[address] = waiting
        if self._accepted:
            self._loop.call_soon(self._open_some)

    async def _open(self, sock: socket.socket, place: Place) -> None:
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                lambda: self._protocol(place), sock, ssl=self._tls, ssl_handshake_timeout=self._seconds
            )
        except OSError:
            # It went away, or spoke no TLS in time.
            self._places.leave(place)
            _end(sock)


def _end(sock: socket.socket) -> None:
    """End a connection that is not open yet; its transport, if there is one, then closes the socket."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


async def listening(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Return sockets that listen on all addresses of a host, and notice clients that vanish. Raise OSError if the port is in use."""
    infos = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets = []
    for family, address in dict.fromkeys((info[0], info[4]) for info in infos):
        try:
            sock = socket.create_server(address, family=family, backlog=backlog)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
            continue  # a name such as localhost may have an address of a family that this machine has not
        sock.setblocking(False)
        keep_alive(sock)
        sockets.append(sock)
    if not sockets:
        raise OSError(errno.EADDRNOTAVAIL, f"no address of {host} is this machine's")
    return sockets
