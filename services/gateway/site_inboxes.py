"""Reads the inboxes of sites (topics with orders to a site's pilots), one reader for each site with attached pilots.

Each order is passed unchanged to the pilot in its key. The gateway does not verify orders, since only pilots have the keys. Orders for
pilots that are not attached are dropped, as pilots repeat their requests.
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
"""How long a pilot that attaches waits until its site's inbox is being read, in seconds; after that its request fails with status 503."""
POLL_SECONDS: Final = 1.0
READ_AT_ONCE: Final = 1_000
IDLE_SECONDS: Final = 60.0
"""How long a site's inbox is still read after its last pilot has detached, in seconds."""


class SiteInboxes:
    """The inboxes of all sites that have pilots attached to this gateway. `run` reads them."""

    name = "site inboxes"

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._inboxes: dict[str, SiteInbox] = {}
        self._opened: asyncio.Queue[SiteInbox] = asyncio.Queue()
        self._waiting = WaitingBytes()

    @property
    def sites(self) -> int:
        """The number of sites whose inboxes are read."""
        return len(self._inboxes)

    @property
    def pilots(self) -> int:
        """The number of pilots that are attached to this gateway."""
        return sum(len(each.streams) for each in self._inboxes.values())

    async def run(self) -> None:
        """Read the inbox of each site from its first attached pilot on, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._read(await self._opened.get()))

    async def attach(self, principal: Principal) -> OrderStream:
        """Return a stream of all orders that are sent to this pilot from now on, and end its earlier stream.

        Raise Unavailable if the site's inbox cannot be read within `OPEN_SECONDS`.
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
        """End the pause of this site's reader and make the next ones short, because a pilot expects an answer.

        Do nothing if no pilot of the site is attached.
        """
        if (inbox := self._inboxes.get(site)) is not None:
            inbox.hurry()

    def end(self) -> None:
        """End the streams of all pilots, which then connect to another gateway."""
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
            # The next pilot that attaches opens the inbox again.
            del self._inboxes[inbox.site]
            inbox.end("the site's inbox cannot be read")


class SiteInbox:
    """The inbox of one site, and the streams of its attached pilots by pilot id."""

    def __init__(self, kafka: Kafka, site: str) -> None:
        self.site = site
        self.streams: dict[bytes, OrderStream] = {}
        self.is_read = asyncio.Event()
        """Set once the reader is at the inbox's end, so that all later orders are read. Also set if reading failed; then all streams have ended."""
        self._kafka = kafka
        self._reader: Reader | None = None
        self._left_at = time.monotonic()

    def attach(self, stream: OrderStream) -> None:
        """Pass the pilot's orders to this stream from now on, and end an earlier stream of the pilot."""
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
        """End the reader's present pause and make the next ones short. Do nothing while the inbox is not open."""
        if self._reader is not None:
            self._reader.hurry()

    def end(self, reason: str) -> None:
        """End all streams of this site for this reason, and wake pilots that wait to attach."""
        for stream in list(self.streams.values()):
            stream.end(reason)
        self.is_read.set()

    async def read(self) -> None:
        """Read the inbox until no pilot has been attached for `IDLE_SECONDS`. Raise Unavailable or Rejected if it cannot be read."""
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
        # Services write an order as one line. Anything longer is no order, and would break the format of the stream.
        if stream is not None and b"\n" not in message.payload and b"\r" not in message.payload:
            self.hurry()
            stream.put(message.payload)
