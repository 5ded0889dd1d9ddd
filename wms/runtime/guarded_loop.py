"""An event loop in which no cancellation is lost, and no connection waits for a host that has vanished.

All drivers (asyncpg, aiokafka, aiohttp) open their connections through the loop, so that one place gives all of them the same limits. A host
that vanishes sends no reset: without limits of its own, TCP waits for it for a quarter of an hour.
"""

import asyncio
import socket
from typing import Any, Final, Protocol

import uvloop

from wms.cancellation import insistent_task

OPEN_SECONDS: Final = 5.0
"""The time limit in seconds of opening one connection, encryption included. Then a driver tries its next server."""
IDLE_SECONDS: Final = 4
"""After how many idle seconds the kernel asks the other end whether it is still there, and after how many more it asks again."""
VANISHED_SECONDS: Final = 10
"""A connection ends with an error once the other end has acknowledged nothing for this many seconds."""


class _Socket(Protocol):
    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...


def keep_alive(connection: _Socket) -> None:
    """Let the kernel end a TCP connection whose other end vanishes while nothing is sent.

    A listening socket passes this on to the connections that it accepts.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, IDLE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, VANISHED_SECONDS // IDLE_SECONDS)


class GuardedLoop(uvloop.Loop):
    """An event loop of uvloop with insistent cancellations, and with limits on all TCP connections that it opens."""

    def __init__(self) -> None:
        super().__init__()
        self.set_task_factory(insistent_task)

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        """Open a connection as asyncio does. Raise TimeoutError, which is an OSError, after `OPEN_SECONDS`."""
        async with asyncio.timeout(OPEN_SECONDS):
            opened: Any = await super().create_connection(*args, **options)
        transport, protocol = opened
        connection = transport.get_extra_info("socket")
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            keep_alive(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, VANISHED_SECONDS * 1000)
        return transport, protocol
