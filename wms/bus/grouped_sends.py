"""Messages of many senders, sent together: while some are on their way to the broker, those that come wait for the next batch.

So a single message goes at once, and the more there are, the fewer batches the broker stores.
"""

import asyncio
from collections.abc import Iterable
from typing import TypeAlias

from wms.bus.kafka import Kafka, OutgoingMessage
from wms.errors import Rejected, Unavailable, WmsError

Waiting: TypeAlias = tuple[OutgoingMessage, asyncio.Future[None]]
MOST = 500
"""The messages that are sent together, at most."""


class GroupedSends:
    """Sends messages over one client of Kafka, in the order in which they come for each topic."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._waiting: dict[str, list[Waiting]] = {}
        """The messages that are not stored yet, by topic; a topic stands here while it is sent to."""
        self._sending: set[asyncio.Task[None]] = set()

    async def send(self, topic: str, message: OutgoingMessage) -> None:
        """Send a message, and wait until Kafka has stored it. Errors are those of `Kafka.send_each`."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if (waiting := self._waiting.get(topic)) is not None:
            waiting.append((message, stored))
        else:
            self._waiting[topic] = [(message, stored)]
            self._sending.add(task := asyncio.create_task(self._send_on(topic), name="send messages"))
            task.add_done_callback(self._sending.discard)
        await stored

    def close(self) -> None:
        """Give up what is not stored yet: its senders get Unavailable."""
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
    """Tell those who still wait whether their messages are stored."""
    for _, stored in sent:
        if stored.done():
            continue
        if fault is None:
            stored.set_result(None)
        else:
            stored.set_exception(fault)
