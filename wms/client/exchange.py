"""Requests and their answers over Kafka: a client with a connection and an inbox of its own."""

import uuid

import msgspec

from wms.bus.kafka import KafkaSettings
from wms.bus.reader import Reader
from wms.bus.topics import Topic, user_inbox
from wms.client.channel import A, Channel
from wms.client.credential import TokenSource
from wms.client.kafka_requests import KafkaRequests
from wms.runtime import clock


class Exchange(Channel):
    """A client's channel over Kafka, which sends requests with the user's token and returns the answers."""

    def __init__(self, settings: KafkaSettings, tokens: TokenSource) -> None:
        self.client = uuid.uuid4().hex
        """The random id of this client, which is the key of the answers sent to it."""
        self._settings = settings
        self._tokens = tokens
        self._requests: KafkaRequests | None = None

    async def open(self, timeout: float) -> None:
        """Connect. Raise Rejected if the token is invalid, Unavailable if no broker answers within `timeout` seconds."""
        owner = self._tokens.read(clock.timestamp()).owner
        self._requests = KafkaRequests(self._settings, user_inbox(owner), f"wms-client-{self.client[:8]}")
        await self._requests.open(timeout)

    async def close(self) -> None:
        """Disconnect, and cancel the requests that wait for an answer."""
        if self._requests is not None:
            await self._requests.close()

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
        """Send a request under the same id until it is answered, and return the answer, of the type `answer`.

        If `in_order` is True, the request is handled after all earlier requests of the user. Raise Rejected if the service
        refuses it, Unavailable if no answer came within `timeout` seconds.
        """
        credential = self._tokens.read(clock.timestamp())
        return await self._opened().ask(
            topic,
            request_id,
            request,
            answer,
            timeout,
            credential=credential,
            client=self.client,
            in_order=in_order,
        )

    async def end_of(self, topic: Topic) -> Reader:
        """Return a reader of a topic that reads only new records. Raise Unavailable if this client may not read the topic."""
        return await self._opened().end_of(topic)

    def _opened(self) -> KafkaRequests:
        assert self._requests is not None, "open() comes first"
        return self._requests
