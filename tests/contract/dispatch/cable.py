"""A cable to a server, on which connections break that send more than so many bytes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf

_PIECE = 1 << 16


class Cable:
    """Passes bytes between its own port and a server's, whatever they mean."""

    def __init__(self, host: str, port: int, most: int) -> None:
        self.port = 0
        self.broken = 0
        """Connections that broke."""
        self._server = host, port
        self._most = most

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass the bytes of one connection until either side ends it, or it breaks."""
        answers, questions = await asyncio.open_connection(*self._server)
        back = asyncio.create_task(_passed(answers, writer))
        await _passed(reader, questions, self._most)
        self.broken += not reader.at_eof()
        back.cancel()
        for each in (questions, writer):
            each.transport.abort()


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: float = inf) -> None:
    """Pass bytes on until there are no more, or more than that."""
    passed = 0
    with contextlib.suppress(ConnectionError):
        while passed <= most and (some := await reader.read(_PIECE)):
            writer.write(some)
            await writer.drain()
            passed += len(some)


@asynccontextmanager
async def cable(host: str, port: int, *, most: int) -> AsyncIterator[Cable]:
    """Lay a cable to a server from a port of this machine."""
    laid = Cable(host, port, most)
    async with await asyncio.start_server(laid.connected, "localhost", 0) as server:
        laid.port = server.sockets[0].getsockname()[1]
        yield laid
