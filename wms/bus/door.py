"""Brokers behind a Unix socket: whoever may open the socket gets a connection to the broker, and nobody else can.

A broker that listens on TCP alone runs in a network namespace of its own, where nobody reaches it. A process in that namespace, its
door, listens on a Unix socket, connects to the broker for each caller, and hands the connected TCP socket over. What follows goes
straight to the broker, as over loopback. An address is `unix:/directory/NAME.sock`; the broker calls itself `NAME.sock`.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import aiokafka.client
import aiokafka.conn

SCHEME: Final = "unix:"
PORT: Final = 9092
"""The broker's port, in its own namespace."""
READY: Final = b"+"
"""What comes with a descriptor; anything else says that the broker does not answer."""
DIAL_SECONDS: Final = 10.0

_doors: dict[str, Path] = {}
"""The sockets by the names of the brokers behind them."""


def servers(bootstrap: str) -> str:
    """Return what the Kafka library is told for an address of ours: HOST:PORT, once it knows the way through a door."""
    if not bootstrap.startswith(SCHEME):
        return bootstrap
    path = Path(bootstrap.removeprefix(SCHEME))
    _doors[path.name] = path
    # The library has no other place where it could be told how to connect.
    aiokafka.client.create_conn = _create_conn
    return f"{path.name}:{PORT}"


def dial(path: Path) -> socket.socket:
    """Return a TCP socket connected to the broker behind a door. Raises OSError: there is none, or the broker is away."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as door:
        door.settimeout(DIAL_SECONDS)
        door.connect(str(path))
        said, descriptors, _, _ = socket.recv_fds(door, 1, 1)
    if said != READY or not descriptors:
        raise ConnectionRefusedError(f"the broker behind {path} does not answer")
    return socket.socket(fileno=descriptors[0])


class _Loop:
    """The event loop, but for connections to a broker behind a door."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path) -> None:
        self._loop = loop
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, ssl: Any = None
    ) -> Any:
        """Connect through the door, whatever the host."""
        assert ssl is None, (host, port)
        connected = await asyncio.to_thread(dial, self._path)
        connected.setblocking(False)
        try:
            return await self._loop.create_connection(factory, sock=connected)
        except BaseException:
            connected.close()
            raise


async def _create_conn(host: str, port: int, **options: Any) -> Any:
    """Stand in for the library's function of that name."""
    connection = aiokafka.conn.AIOKafkaConnection(host, port, **options)
    if (path := _doors.get(host)) is not None:
        connection._loop = _Loop(connection._loop, path)  # noqa: SLF001
    await connection.connect()
    return connection
