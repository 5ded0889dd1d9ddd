"""The connection of a job agent to the services over Kafka. It implements the protocol `AgentLink`."""

import asyncio

from services.job_agent.pilot_credential import HeldCredential
from wms.auth.orders import PilotCredential
from wms.bus.inbox import Inbox
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.topics import site_inbox_of
from wms.errors import Unavailable
from wms.ids import AttemptId, PilotId
from wms.messages import match_requests, reports
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import Peeked, Report
from wms.messages.site_inbox import ToAgent, TokenRenewal
from wms.messages.wire import encode

SEND_SECONDS = 5.0
"""Seconds within which Kafka must accept a message. After that the message counts as not sent: Unavailable is raised."""


class KafkaLink:
    """The Kafka connection of one job agent. Each message that it sends has the pilot's token."""

    def __init__(
        self, settings: KafkaSettings, pilot_id: PilotId, site: str, credential: PilotCredential
    ) -> None:
        """Prepare a link, which is not connected yet. Raise Rejected if the credential has no valid key."""
        self._settings = settings
        self._pilot_id = pilot_id
        self._site = site
        self._held = HeldCredential(pilot_id, site, credential)
        self._opened: tuple[Kafka, Inbox[ToAgent | None]] | None = None

    @property
    def refused(self) -> int:
        """How many received messages were ignored, because no service had signed them for this pilot."""
        return self._held.codec.refused

    @property
    def token(self) -> str:
        """The pilot's present token."""
        return self._held.token

    def payload_token(self, attempt_id: AttemptId, lifetime: float) -> str:
        """Return the token with which an attempt's payload can read its own job. It expires after `lifetime` seconds, at most 90 days."""
        return self._held.payload_token(attempt_id, lifetime)

    @property
    def is_open(self) -> bool:
        """Whether the connection is open. A break that was not noticed yet does not show."""
        return self._opened is not None

    def renew(self, renewal: TokenRenewal) -> None:
        """Use the pilot's new token from now on. `renewal` has it encrypted for this pilot.

        It is ignored if it cannot be decrypted, or does not expire later than the present one.
        """
        self._held.renew(renewal)

    async def open(self) -> None:
        """Connect to Kafka, after closing an old connection. All messages that services send to the pilot from then on arrive.

        Raise Unavailable if Kafka cannot be reached.
        """
        await self.close()
        kafka = Kafka(self._settings, self._pilot_id)
        inbox = Inbox(kafka, site_inbox_of(self._site), self._held.codec, {self._pilot_id.encode()})
        try:
            await kafka.start()
            await inbox.start()
        except BaseException:
            await inbox.close()
            await kafka.close()
            raise
        self._opened = kafka, inbox

    async def close(self) -> None:
        """Close the connection, if it is open."""
        if self._opened is not None:
            (kafka, inbox), self._opened = self._opened, None
            await inbox.close()
            await kafka.close()

    async def ask(self, request: MatchRequest) -> None:
        """Send a match request. Return once Kafka has accepted it; the services answer later with an order.

        Raise Unavailable if Kafka does not accept it within SEND_SECONDS or the connection is closed.
        """
        await self._send(match_requests.TOPIC, encode(request))

    async def report(self, report: Report | Peeked) -> None:
        """Send a report, or a part of a payload's output. Return once Kafka has accepted it.

        Raise Unavailable if the connection is closed, or Kafka does not accept the report within SEND_SECONDS. Raise Rejected if
        the report is too large for a message.
        """
        await self._send(reports.TOPIC, encode(report))

    async def receive(self, timeout_seconds: float) -> list[ToAgent]:
        """Wait for orders to the pilot and return those that have come; empty if none comes within `timeout_seconds`.

        Orders without a valid signature are left out. Raise Unavailable if the connection is closed or broken.
        """
        _, inbox = self._ends()
        return [order for order in await inbox.poll(timeout_seconds) if order is not None]

    async def check(self) -> None:
        """Raise Unavailable if Kafka cannot be reached, or if the address now leads to another Kafka cluster than at `open`."""
        kafka, _ = self._ends()
        if await kafka.read_cluster_id() != kafka.cluster_id:
            raise Unavailable("the broker is another cluster now")

    async def _send(self, topic: str, payload: bytes) -> None:
        kafka, inbox = self._ends()
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await kafka.send(topic, self._pilot_id, payload, self._held.token)
        except TimeoutError:
            raise Unavailable(f"{topic}: not taken within {SEND_SECONDS:g} s") from None
        inbox.hurry()

    def _ends(self) -> tuple[Kafka, Inbox[ToAgent | None]]:
        if self._opened is None:
            raise Unavailable("the link is closed")
        return self._opened
