"""The link between a job agent and the services: sends match requests and reports, and receives orders.

A link may lose messages without a notice. A sender that needs an answer sends its message again under the same id.
"""

import asyncio

import structlog

from wms.auth.orders import PilotCredential, PilotKey, claimed_end
from wms.bus.inbox import Inbox
from wms.bus.kafka import BrokerSettings, Kafka
from wms.bus.topics import site_inbox_of
from wms.errors import Rejected, Unavailable
from wms.ids import PilotId
from wms.messages import reports, requests
from wms.messages.reports import Peeked, Report
from wms.messages.requests import MatchRequest
from wms.messages.site_inbox import ToAgent, TokenRenewal
from wms.messages.wire import PAYLOAD_LIMIT, Codec, encode

log = structlog.get_logger()

SEND_SECONDS = 5.0
"""Seconds that the broker has to take a message; after them the message counts as not sent and is sent again later."""


class OrderCodec(Codec[ToAgent | None]):
    """A decoder of the orders that the services signed for one pilot; messages without a valid signature are counted."""

    def __init__(self, site: str, key: PilotKey) -> None:
        super().__init__(ToAgent)
        self._topic = site_inbox_of(site).name
        self._key = key
        self.refused = 0
        """The number of messages without a valid signature of the services."""

    def decode(self, payload: bytes) -> ToAgent | None:
        """Return the order, or None if it was forged; raise Rejected if it is signed and cannot be decoded."""
        try:
            order = self._key.verified(self._topic, payload, PAYLOAD_LIMIT)
        except Rejected as fault:
            self._count(fault)
            return None
        return super().decode(bytes(order))

    def _count(self, fault: Rejected) -> None:
        self.refused += 1
        # Each time that there are twice as many: whoever sends many is not to fill the log.
        if self.refused.bit_count() == 1:
            log.warning("order refused", refused=self.refused, error=fault.message)


class KafkaLink:
    """The link of an agent at a trusted site: Kafka topics, with the pilot's token in every message."""

    def __init__(
        self, settings: BrokerSettings, pilot_id: PilotId, site: str, credential: PilotCredential
    ) -> None:
        """Raise Rejected if the credential has no valid key."""
        self._settings = settings
        self._pilot_id = pilot_id
        self._site = site
        self._token = credential.token
        self._key = PilotKey(pilot_id, credential.key)
        self._codec = OrderCodec(site, self._key)
        self._opened: tuple[Kafka, Inbox[ToAgent | None]] | None = None

    @property
    def refused(self) -> int:
        """The number of received messages that no service had signed for this pilot."""
        return self._codec.refused

    @property
    def is_open(self) -> bool:
        """Whether the link is connected, as far as the agent knows."""
        return self._opened is not None

    def renew(self, renewal: TokenRenewal) -> None:
        """Use the renewed token from now on; ignore one that expires no later than the token in use."""
        try:
            token = self._key.opened(renewal.sealed)
        except Rejected as fault:
            log.warning("new token not taken", error=fault.message)
            return
        if claimed_end(token) > claimed_end(self._token):
            self._token = token
            log.info("new token taken")

    async def open(self) -> None:
        """Connect, after closing an old connection; from then on all orders to the pilot arrive. Raise Unavailable if it fails."""
        await self.close()
        kafka = Kafka(self._settings, self._pilot_id)
        inbox = Inbox(kafka, site_inbox_of(self._site), self._codec, key=self._pilot_id)
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
        """Send a match request; raise Unavailable if the broker does not take it."""
        await self._send(requests.TOPIC, encode(request))

    async def report(self, report: Report | Peeked) -> None:
        """Send a report, or a part of a payload's output; raise Unavailable if the broker does not take it."""
        await self._send(reports.TOPIC, encode(report))

    async def receive(self, timeout_seconds: float) -> list[ToAgent]:
        """Return the orders that arrived for the pilot within the timeout, without those that the services did not sign."""
        _, inbox = self._ends()
        return [order for order in await inbox.poll(timeout_seconds) if order is not None]

    async def check(self) -> None:
        """Raise Unavailable if the broker is gone, or belongs to another cluster now."""
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

    def _ends(self) -> tuple[Kafka, Inbox[ToAgent | None]]:
        if self._opened is None:
            raise Unavailable("the link is closed")
        return self._opened
