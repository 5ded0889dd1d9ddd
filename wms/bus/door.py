"""Brokers behind a Unix socket: processes that may open the socket get a connection to the broker, and no others.

A broker that listens on TCP alone runs in a network namespace of its own, where nobody else can connect. Its doorkeeper, a process in
that namespace, listens on a Unix socket. It connects to the broker for each caller and passes the connected TCP socket. Further traffic
goes directly to the broker, as over loopback. An address is `unix:/directory/NAME.sock`; the broker calls itself `NAME.sock`.
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
"""The broker's TCP port in its own namespace."""
READY: Final = b"+"
"""The byte that comes with the passed socket. Any other byte means that the broker does not answer."""
DIAL_SECONDS: Final = 10.0

_doors: dict[str, Path] = {}
"""The Unix socket of each broker behind a door, by broker name."""


def servers(bootstrap: str) -> str:
    """Return the HOST:PORT for the Kafka library. For a `unix:` address also register the socket that leads to the broker."""
    if not bootstrap.startswith(SCHEME):
        return bootstrap
    path = Path(bootstrap.removeprefix(SCHEME))
    _doors[path.name] = path
    # The library has no other hook for connecting.
    aiokafka.client.create_conn = _create_conn
    return f"{path.name}:{PORT}"


def dial(path: Path) -> socket.socket:
    """Return a TCP socket connected to the broker behind a Unix socket.

    Raise OSError if the socket is missing or the broker does not answer.
    """
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as door:
        door.settimeout(DIAL_SECONDS)
        door.connect(str(path))
        said, descriptors, _, _ = socket.recv_fds(door, 1, 1)
    if said != READY or not descriptors:
        raise ConnectionRefusedError(f"the broker behind {path} does not answer")
    return socket.socket(fileno=descriptors[0])


class _Loop:
    """An event loop wrapper that opens connections to one broker through its Unix socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path) -> None:
        self._loop = loop
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, ssl: Any = None
    ) -> Any:
        """Connect through the Unix socket; host and port are ignored."""
        assert ssl is None, (host, port)
        connected = await asyncio.to_thread(dial, self._path)
        connected.setblocking(False)
        try:
            return await self._loop.create_connection(factory, sock=connected)
        except BaseException:
            connected.close()
            raise


async def _create_conn(host: str, port: int, **options: Any) -> Any:
    """Connect to a broker, through its door if it has one. It replaces the library's function of the same name."""
    connection = aiokafka.conn.AIOKafkaConnection(host, port, **options)
    if (path := _doors.get(host)) is not None:
        connection._loop = _Loop(connection._loop, path)  # noqa: SLF001
    await connection.connect()
    return connection
