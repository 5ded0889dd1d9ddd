"""The connection from the gateway to the services: one to the broker for all users, and one channel for each request.

Each message has the user's token in its headers. A reply's Kafka key names the verified owner and the random client id of one request. So
no reply reaches a request of another owner, of another token or of another gateway.
"""

import asyncio
import uuid

import msgspec

from wms.bus.kafka import KafkaSettings
from wms.bus.reader import Reader
from wms.bus.topics import Topic, find
from wms.client.channel import A, Channel
from wms.client.credential import UserCredential
from wms.client.kafka_requests import KafkaRequests
from wms.messages.replies import GATEWAY_CLIENT, GATEWAY_INBOX
from wms.runtime import clock


class CallerChannel(Channel):
    """The channel of one HTTP request, which sends messages under that request's token."""

    def __init__(self, requests: KafkaRequests, credential: UserCredential) -> None:
        self.client = GATEWAY_CLIENT + uuid.uuid4().hex
        self._requests = requests
        self._credential = credential

    async def open(self, timeout: float) -> None:
        """Do nothing: all channels share one connection, which `ServiceChannels` opens."""

    async def close(self) -> None:
        """Do nothing: all channels share one connection, which `ServiceChannels` closes."""

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
        """Send a message to `topic` under the token, and return the reply, decoded as `answer`.

        With `in_order`, the service handles it after the user's earlier messages. Raise Rejected if the token has expired or the service
        refuses the message, and Unavailable if no reply comes within `timeout` seconds.
        """
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
        """Return a reader of the records that are added to a topic from now on. Raise Unavailable if no broker answers."""
        return await self._requests.end_of(topic)


class ServiceChannels:
    """Keeps one connection to the broker for all users, and makes channels over it."""

    name = "answers"

    def __init__(self, kafka: KafkaSettings) -> None:
        self._requests = KafkaRequests(kafka, find(GATEWAY_INBOX), "wms-gateway")

    async def run(self) -> None:
        """Keep the connection open until `close`. Cancelling this call does not close it, since the last requests still need it."""
        await asyncio.shield(self._requests.begin())

    @property
    def waiting(self) -> int:
        """The number of sent messages whose replies have not come yet."""
        return self._requests.waiting

    def channel(self, credential: UserCredential) -> Channel:
        """Return a new channel for one request, which sends messages under this verified token."""
        return CallerChannel(self._requests, credential)

    async def close(self) -> None:
        """Close the connection. Requests that wait for a reply get none."""
        await self._requests.close()
