"""Groups messages of many senders into batches: messages that arrive while a batch is on its way form the next batch.

So a single message is sent at once. Under load, the Kafka broker stores fewer batches.
"""

import asyncio
from collections.abc import Iterable
from typing import TypeAlias

from wms.bus.kafka import Kafka, OutgoingMessage
from wms.errors import Rejected, Unavailable, WmsError

Waiting: TypeAlias = tuple[OutgoingMessage, asyncio.Future[None]]
MOST = 500
"""The largest number of messages in a batch."""


class GroupedSends:
    """Sends messages of many callers through one Kafka client, in batches. Each topic keeps the order of the calls of `send`."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._waiting: dict[str, list[Waiting]] = {}
        """The messages that Kafka has not stored yet, by topic. A topic is a key only while a task sends to it."""
        self._sending: set[asyncio.Task[None]] = set()

    async def send(self, topic: str, message: OutgoingMessage) -> None:
        """Send a message, and wait until Kafka has stored it.

        Raise Unavailable if the message may not have arrived. Raise Rejected if the message is too large or the topic cannot be created.
        """
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if (waiting := self._waiting.get(topic)) is not None:
            waiting.append((message, stored))
        else:
            self._waiting[topic] = [(message, stored)]
            self._sending.add(task := asyncio.create_task(self._send_on(topic), name="send messages"))
            task.add_done_callback(self._sending.discard)
        await stored

    def close(self) -> None:
        """Stop sending. Calls of `send` whose messages are not stored yet raise Unavailable."""
        for task in self._sending:
            task.cancel()

    async def _send_on(self, topic: str) -> None:
        try:
            while now := self._waiting[topic][:MOST]:
                _settle(now, await self._send(topic, [message for message, _ in now]))
                del self._waiting[topic][: len(now)]
        finally:
            _settle(self._waiting.pop(topic), Unavailable("the connection to the broker was closed"))

    async def _send(self, topic: str, messages: list[OutgoingMessage]) -> Rejected | Unavailable | None:
        try:
            await self._kafka.send_each(topic, messages)
        except (Rejected, Unavailable) as fault:
            return fault
        return None


def _settle(sent: Iterable[Waiting], fault: WmsError | None) -> None:
    """Complete the futures of these messages: with success if `fault` is None, otherwise with `fault`. Cancelled ones are skipped."""
    for _, stored in sent:
        if stored.done():
            continue
        if fault is None:
            stored.set_result(None)
        else:
            stored.set_exception(fault)
