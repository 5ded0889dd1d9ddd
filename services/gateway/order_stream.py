"""The stream of orders to one pilot: a bounded queue, and the response that writes it as server-sent events.

The stream of a pilot that does not read is closed. The pilot then reconnects and repeats its requests, so the gateway stores nothing for
it.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import structlog
from starlette.responses import Response

from services.gateway.http_connection import KEY, BoundedConnection
from services.gateway.operation import STREAM_TYPE
from wms.errors import Rejected
from wms.runtime import clock

log = structlog.get_logger()

QUIET_SECONDS: Final = 15.0
"""After this many seconds without an order, an empty comment is written, so that the pilot sees that the stream is alive."""
WRITE_SECONDS: Final = 20.0
"""How long a pilot may take to read what was written, in seconds; after that its connection is cut."""
STREAM_BYTES: Final = 4 * 1024 * 1024
"""The most bytes of orders in one pilot's queue; one more order ends its stream. The largest job offers take several megabytes."""
ALL_BYTES: Final = 256 * 1024 * 1024
"""The most bytes of orders in the queues of all pilots of a gateway. An order beyond it ends the stream of its pilot."""
ALIVE: Final = b":\n\n"
UNREAD: Final = "the pilot does not read its orders"
"""The reason with which a stream ends if its pilot leaves too many bytes unread."""


class WaitingBytes:
    """The number of bytes of orders in all pilots' queues (`now`), and their limit (`most`)."""

    def __init__(self, most: int = ALL_BYTES) -> None:
        self.most = most
        self.now = 0


class OrderStream:
    """The queue of orders for one pilot. It counts its bytes in `waiting`, which all pilots share, and holds at most `most` bytes."""

    def __init__(self, pilot_id: str, waiting: WaitingBytes, most: int = STREAM_BYTES) -> None:
        self.pilot_id = pilot_id
        self.on_end: Callable[[OrderStream], None] = lambda _: None
        """A function that is called once, with this stream, when the stream ends."""
        self.ended = ""
        """The reason why the stream ended; empty while it is open."""
        self._waiting = waiting
        self._most = most
        self._orders = deque[bytes]()
        self._bytes = 0
        self._news = asyncio.Event()

    def put(self, order: bytes) -> None:
        """Append an order, as the service signed it. If a byte limit would be exceeded, end the stream instead. After the end do nothing."""
        if self.ended:
            return
        if self._bytes + len(order) > self._most or self._waiting.now + len(order) > self._waiting.most:
            self.end(UNREAD)
            return
        self._orders.append(order)
        self._count(len(order))
        self._news.set()

    def end(self, reason: str) -> None:
        """End the stream and discard the queued orders. `reason` is logged; a second call has no effect."""
        if not self.ended:
            self.ended = reason
            self._orders.clear()
            self._count(-self._bytes)
            self._news.set()
            self.on_end(self)

    async def next(self, seconds: float) -> list[bytes]:
        """Remove and return the queued orders, waiting at most `seconds` for one. Empty if none came, or once the stream has ended."""
        if not (self._orders or self.ended):
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()
        found = list(self._orders)
        self._orders.clear()
        self._count(-self._bytes)
        return found

    def _count(self, size: int) -> None:
        self._bytes += size
        self._waiting.now += size


class OrderStreamResponse(Response):
    """A response that writes a stream of orders as server-sent events.

    It ends with the stream, at `expires_at` (seconds since 1970), or when `check` raises Rejected because the token was revoked.
    """

    def __init__(self, stream: OrderStream, expires_at: float, check: Callable[[], None]) -> None:
        super().__init__(
            media_type=STREAM_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._stream = stream
        self._expires_at = expires_at
        self._check = check

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Write the stream until it ends. If the pilot does not read within `WRITE_SECONDS`, cut the connection."""
        connection: BoundedConnection = scope[KEY]
        connection.bound_send_buffer()
        listening = asyncio.create_task(self._listen(receive), name="listen")
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._write_all(send)
            if self._stream.ended == UNREAD:
                connection.abort()
                return
            async with asyncio.timeout(WRITE_SECONDS):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            self._stream.end(UNREAD)
            connection.abort()
        finally:
            self._stream.end("the connection was closed")
            listening.cancel()
            log.debug("stream of orders ended", pilot=self._stream.pilot_id, reason=self._stream.ended)

    async def _write_all(self, send: Any) -> None:
        orders: list[bytes] = []
        while not self._stream.ended:
            # The first event says that the site's inbox is read.
            piece = b"".join(b"data: %b\n\n" % each for each in orders) or ALIVE
            async with asyncio.timeout(WRITE_SECONDS):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            left = self._expires_at - clock.timestamp()
            if left <= 0:
                self._stream.end("its token has expired")
            orders = await self._stream.next(min(QUIET_SECONDS, max(left, 0.0)))
            self._end_if_revoked()

    def _end_if_revoked(self) -> None:
        try:
            self._check()
        except Rejected as fault:
            self._stream.end(fault.message)

    async def _listen(self, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stream.end("the pilot went away")
