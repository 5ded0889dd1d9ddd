"""Kafka brokers behind a Unix socket: only processes that may open the socket get a connection to the broker.

A broker that listens on TCP alone runs in a network namespace of its own, where nobody else can connect. Its doorkeeper, a process in that
namespace, listens on a Unix socket. It connects to the broker for each caller and passes the connected TCP socket. Further traffic goes
directly to the broker, as over loopback. An address is `unix:/directory/NAME.sock`; the broker calls itself `NAME.sock`.
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
"""The TCP port of the Kafka broker within its own network namespace."""
READY: Final = b"+"
"""The byte that the doorkeeper sends with a connected socket. Any other byte means that the Kafka broker does not answer."""
DIAL_SECONDS: Final = 10.0

_doors: dict[str, Path] = {}
"""The Unix socket of each broker, by the name that the broker calls itself."""


def servers(bootstrap: str) -> str:
    """Return the HOST:PORT addresses that the Kafka library takes for `bootstrap`.

    For a `unix:` address, also let the library in this process connect to the broker by that socket.
    """
    if not bootstrap.startswith(SCHEME):
        return bootstrap
    path = Path(bootstrap.removeprefix(SCHEME))
    _doors[path.name] = path
    # The library has no other hook for connecting.
    aiokafka.client.create_conn = _create_conn
    return f"{path.name}:{PORT}"


def dial(path: Path) -> socket.socket:
    """Return a TCP socket that is connected to the Kafka broker behind the Unix socket at `path`.

    Raise OSError if there is no such socket or the broker does not answer.
    """
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as door:
        door.settimeout(DIAL_SECONDS)
        door.connect(str(path))
        said, descriptors, _, _ = socket.recv_fds(door, 1, 1)
    if said != READY or not descriptors:
        raise ConnectionRefusedError(f"the broker behind {path} does not answer")
    return socket.socket(fileno=descriptors[0])


class _Loop:
    """An event loop whose connections all go to one broker, through its Unix socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path) -> None:
        self._loop = loop
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, ssl: Any = None
    ) -> Any:
        """Connect through the Unix socket; `host` and `port` are ignored."""
        assert ssl is None, (host, port)
        connected = await asyncio.to_thread(dial, self._path)
        connected.setblocking(False)
        try:
            return await self._loop.create_connection(factory, sock=connected)
        except BaseException:
            connected.close()
            raise


async def _create_conn(host: str, port: int, **options: Any) -> Any:
    """Connect to a broker, by its Unix socket if it has one. It replaces the Kafka library's function of the same name."""
    connection = aiokafka.conn.AIOKafkaConnection(host, port, **options)
    if (path := _doors.get(host)) is not None:
        connection._loop = _Loop(connection._loop, path)  # noqa: SLF001
    await connection.connect()
    return connection
