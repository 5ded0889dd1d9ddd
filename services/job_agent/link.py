"""How a job agent reaches the system: it asks and reports, and is told.

A link may lose what it carries, and says so by nothing: whoever needs an answer asks again under the same id.
"""

import structlog

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

log = structlog.get_logger()


class KafkaLink:
    """The link of agents that a trusted site runs: Kafka's topics, its token with every message."""

    def __init__(self, settings: Settings, pilot_id: PilotId, site: str, token: str) -> None:
        self._settings = settings
        self._pilot_id = pilot_id
        self._site = site
        self._token = token
        self._kafka: Kafka | None = None
        self._inbox: Inbox[ToAgent] | None = None

    async def open(self) -> None:
        """Connect; from then on nothing that is sent to the pilot is missed. Raises Unavailable."""
        await self.close()
        self._kafka = Kafka(self._settings, self._pilot_id)
        await self._kafka.start()
        self._inbox = Inbox(self._kafka, site_inbox_of(self._site), Codec(ToAgent), key=self._pilot_id)
        await self._inbox.start()

    async def close(self) -> None:
        """Disconnect."""
        inbox, self._inbox = self._inbox, None
        kafka, self._kafka = self._kafka, None
        if inbox is not None:
            await inbox.close()
        if kafka is not None:
            await kafka.close()

    async def ask(self, request: MatchRequest) -> None:
        """Ask for jobs."""
        await self._send(requests.TOPIC, encode(request))

    async def report(self, report: Report | Peeked) -> None:
        """Tell what happened."""
        await self._send(reports.TOPIC, encode(report))

    async def receive(self, timeout_seconds: float) -> list[ToAgent]:
        """Return what the pilot was told."""
        if self._inbox is None:
            raise Unavailable("the link is closed")
        return await self._inbox.poll(timeout_seconds)

    async def check(self) -> None:
        """Raise Unavailable if the broker is gone, or is another one now."""
        if self._kafka is None:
            raise Unavailable("the link is closed")
        if await self._kafka.read_cluster_id() != self._kafka.cluster_id:
            raise Unavailable("the broker is another cluster now")

    async def _send(self, topic: str, payload: bytes) -> None:
        if self._kafka is None:
            raise Unavailable("the link is closed")
        await self._kafka.send(topic, self._pilot_id, payload, self._token)
