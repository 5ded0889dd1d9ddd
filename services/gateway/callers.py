"""The way from the gateway to the services: one connection to the broker for all users, and a channel for each request.

The token goes with each message. The key of an answer names the owner whom the service verified, and the random client of one request:
no answer reaches a request of another owner, of another token, or of another gateway.
"""

import asyncio
import uuid

import msgspec

from wms.bus.kafka import BrokerSettings
from wms.bus.reader import Reader
from wms.bus.topics import Topic, find
from wms.client.broker_requests import BrokerRequests
from wms.client.channel import A, Channel
from wms.client.credential import UserCredential
from wms.messages.replies import GATEWAY_CLIENT, GATEWAY_INBOX
from wms.runtime import clock


class CallerChannel(Channel):
    """The channel of one request, under the token that it came with."""

    def __init__(self, requests: BrokerRequests, credential: UserCredential) -> None:
        self.client = GATEWAY_CLIENT + uuid.uuid4().hex
        self._requests = requests
        self._credential = credential

    async def open(self, timeout: float) -> None:
        """Do nothing: the connection is the gateway's."""

    async def close(self) -> None:
        """Do nothing: the connection is the gateway's."""

    async def ask(
        self,
        topic: str,
        request_id: str,
        request: msgspec.Struct,
        answer: type[A],
        timeout: float,
        *,
        in_order: bool = True,
    ) -> A:
        """Send a message under the token, and return the service's answer. The errors are those of the port."""
        self._credential.check(clock.timestamp())
        return await self._requests.ask(
            topic,
            request_id,
            request,
            answer,
            timeout,
            credential=self._credential,
            client=self.client,
            in_order=in_order,
        )

    async def end_of(self, topic: Topic) -> Reader:
        """Return a reader of a topic from its end on. Unavailable: no broker answers."""
        return await self._requests.end_of(topic)


class Callers:
    """Keeps the connection, and makes channels over it."""

    name = "answers"

    def __init__(self, kafka: BrokerSettings) -> None:
        self._requests = BrokerRequests(kafka, find(GATEWAY_INBOX), "wms-gateway")

    async def run(self) -> None:
        """Keep the connection until `close`, which comes after the last request: cancelled, it only returns."""
        await asyncio.shield(self._requests.begin())

    @property
    def waiting(self) -> int:
        """The number of messages whose answers are awaited."""
        return self._requests.waiting

    def channel(self, credential: UserCredential) -> Channel:
        """Return a channel for one request with a verified token."""
        return CallerChannel(self._requests, credential)

    async def close(self) -> None:
        """Disconnect; requests that wait for an answer are given up."""
        await self._requests.close()
