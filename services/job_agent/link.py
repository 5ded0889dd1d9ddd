"""How a job agent reaches the system: it asks and reports, and is told.

A link may lose what it carries, and says so by nothing: whoever needs an answer asks again under the same id.
"""

import asyncio

from wms.bus.inbox import Inbox
from wms.bus.kafka import Kafka, Settings
from wms.bus.topics import site_inbox_of
from wms.errors import Unavailable
from wms.ids import PilotId
from wms.messages import reports, requests
from wms.messages.reports import Peeked, Report
from wms.messages.requests import MatchRequest
from wms.messages.site_inbox import ToAgent
from wms.messages.wire import Codec, encode

SEND_SECONDS = 5.0
"""What the broker did not take within so long is sent again rather than waited for."""


class KafkaLink:
    """The link of agents that a trusted site runs: Kafka's topics, its token with every message."""

    def __init__(self, settings: Settings, pilot_id: PilotId, site: str, token: str) -> None:
        self._settings = settings
        self._pilot_id = pilot_id
        self._site = site
        self._token = token
        self._opened: tuple[Kafka, Inbox[ToAgent]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is somebody to talk to, as far as is known."""
        return self._opened is not None

    async def open(self) -> None:
        """Connect, anew if need be; from then on nothing that is sent to the pilot is missed. Raises Unavailable."""
        await self.close()
        kafka = Kafka(self._settings, self._pilot_id)
        inbox: Inbox[ToAgent] = Inbox(kafka, site_inbox_of(self._site), Codec(ToAgent), key=self._pilot_id)
        try:
            await kafka.start()
            await inbox.start()
        except BaseException:
            await inbox.close()
            await kafka.close()
            raise
        self._opened = kafka, inbox

    async def close(self) -> None:
        """Disconnect."""
        if self._opened is not None:
            (kafka, inbox), self._opened = self._opened, None
            await inbox.close()
            await kafka.close()

    async def ask(self, request: MatchRequest) -> None:
        """Ask for jobs."""
        await self._send(requests.TOPIC, encode(request))

    async def report(self, report: Report | Peeked) -> None:
        """Tell what happened."""
        await self._send(reports.TOPIC, encode(report))

    async def receive(self, timeout_seconds: float) -> list[ToAgent]:
        """Return what the pilot was told."""
        _, inbox = self._ends()
        return await inbox.poll(timeout_seconds)

    async def check(self) -> None:
        """Raise Unavailable if the broker is gone, or is another one now."""
        kafka, _ = self._ends()
        if await kafka.read_cluster_id() != kafka.cluster_id:
            raise Unavailable("the broker is another cluster now")

    async def _send(self, topic: str, payload: bytes) -> None:
        kafka, inbox = self._ends()
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await kafka.send(topic, self._pilot_id, payload, self._token)
        except TimeoutError:
            raise Unavailable(f"{topic}: not taken within {SEND_SECONDS:g} s") from None
        inbox.hurry()

    def _ends(self) -> tuple[Kafka, Inbox[ToAgent]]:
        if self._opened is None:
            raise Unavailable("the link is closed")
        return self._opened
