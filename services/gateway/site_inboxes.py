"""Reads the inboxes of sites whose pilots are attached, each once, and passes every order untouched to the pilot that it is for.

The gateway does not verify orders: only their pilots have the keys. What nobody is attached for is dropped, as pilots ask again.
"""

import asyncio
import time
from typing import Final

import structlog

from services.gateway.order_stream import OrderStream, WaitingBytes
from wms.auth.principal import Principal
from wms.bus.kafka import Kafka, Message, Reader
from wms.bus.topics import site_inbox_of
from wms.errors import Rejected, Unavailable

log = structlog.get_logger()

OPEN_SECONDS: Final = 15.0
"""Seconds within which a site's inbox must be open for a pilot that attaches."""
POLL_SECONDS: Final = 1.0
READ_AT_ONCE: Final = 1_000
IDLE_SECONDS: Final = 60.0
"""Seconds without a pilot after which a site's inbox is closed."""


class SiteInboxes:
    """The inboxes of the sites whose pilots are attached to this gateway. `run` reads them."""

    name = "site inboxes"

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._inboxes: dict[str, SiteInbox] = {}
        self._opened: asyncio.Queue[SiteInbox] = asyncio.Queue()
        self._waiting = WaitingBytes()

    @property
    def sites(self) -> int:
        """How many inboxes are read."""
        return len(self._inboxes)

    @property
    def pilots(self) -> int:
        """How many pilots are attached."""
        return sum(len(each.streams) for each in self._inboxes.values())

    async def run(self) -> None:
        """Read the inboxes of sites as pilots attach, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._read(await self._opened.get()))

    async def attach(self, principal: Principal) -> OrderStream:
        """Return a stream of all orders that are sent to this pilot from now on. An earlier stream of the pilot ends.

        Raise Unavailable if the site's inbox cannot be read.
        """
        assert principal.site is not None, "a pilot's token names its site"
        assert principal.pilot_id is not None, "and the pilot"
        inbox = self._inbox(principal.site)
        stream = OrderStream(principal.pilot_id, self._waiting)
        inbox.attach(stream)
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await inbox.is_read.wait()
        except TimeoutError:
            stream.end("the site's inbox cannot be read")
        if stream.ended:
            raise Unavailable(stream.ended)
        return stream

    def hurry(self, site: str) -> None:
        """Look for orders to this site's pilots without a pause, because one of them expects an answer."""
        if (inbox := self._inboxes.get(site)) is not None:
            inbox.hurry()

    def end(self) -> None:
        """End all streams, so that their pilots connect to another gateway."""
        for inbox in self._inboxes.values():
            inbox.end("the gateway ends")

    def _inbox(self, site: str) -> "SiteInbox":
        if site not in self._inboxes:
            self._inboxes[site] = SiteInbox(self._kafka, site)
            self._opened.put_nowait(self._inboxes[site])
        return self._inboxes[site]

    async def _read(self, inbox: "SiteInbox") -> None:
        try:
            await inbox.read()
        except (Unavailable, Rejected) as error:
            log.warning("inbox of a site not read", site=inbox.site, error=error.message)
        finally:
            # From here on another pilot opens the inbox anew.
            del self._inboxes[inbox.site]
            inbox.end("the site's inbox cannot be read")


class SiteInbox:
    """The inbox of one site, and the streams of its attached pilots."""

    def __init__(self, kafka: Kafka, site: str) -> None:
        self.site = site
        self.streams: dict[bytes, OrderStream] = {}
        self.is_read = asyncio.Event()
        """Set once all further orders are read, or once the inbox cannot be read and its streams have ended."""
        self._kafka = kafka
        self._reader: Reader | None = None
        self._left_at = time.monotonic()

    def attach(self, stream: OrderStream) -> None:
        """Pass the pilot's orders to this stream, in place of an earlier one."""
        key = stream.pilot_id.encode()
        if (earlier := self.streams.get(key)) is not None:
            earlier.end("the pilot opened another stream")
        self.streams[key] = stream
        stream.on_end = self._detach

    def _detach(self, stream: OrderStream) -> None:
        key = stream.pilot_id.encode()
        if self.streams.get(key) is stream:
            del self.streams[key]
            self._left_at = time.monotonic()

    def hurry(self) -> None:
        """Read again without a pause."""
        if self._reader is not None:
            self._reader.hurry()

    def end(self, reason: str) -> None:
        """End all streams."""
        for stream in list(self.streams.values()):
            stream.end(reason)
        self.is_read.set()

    async def read(self) -> None:
        """Read the inbox until no pilot has been attached for a while. Raise Unavailable or Rejected if it cannot be read."""
        topic = site_inbox_of(self.site)
        await self._kafka.ensure([topic])
        self._reader = reader = await self._kafka.reader(topic.name)
        try:
            await reader.assign_end()
            self.is_read.set()
            while self.streams or time.monotonic() - self._left_at < IDLE_SECONDS:
                for message in await reader.poll(POLL_SECONDS, READ_AT_ONCE):
                    self._pass_on(message)
        finally:
            self._reader = None
            await reader.close()

    def _pass_on(self, message: Message) -> None:
        stream = self.streams.get(message.key or b"")
        # An order of the services is one line; whatever is more is none, and would break the stream.
        if stream is not None and b"\n" not in message.payload and b"\r" not in message.payload:
            self.hurry()
            stream.put(message.payload)
