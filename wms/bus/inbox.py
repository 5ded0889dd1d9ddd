"""An inbox: a topic from which one reader gets the messages that are sent after it started.

No offset is stored. A reader that lost a message sends its request again.
"""

import asyncio
import time
from collections.abc import Container, Sequence
from typing import Generic, TypeVar

import structlog

from wms.bus.kafka import Kafka, Message, Reader
from wms.bus.probe import ConsumerHealth, Probes, is_probe
from wms.bus.topics import Topic
from wms.errors import Rejected
from wms.messages.wire import Codec

log = structlog.get_logger()

M = TypeVar("M")

STEP_BYTES = 1_000_000
"""How many bytes of payloads are decoded before other tasks get a turn."""
LOG_SECONDS = 1.0
"""How often, in seconds, skipped messages are logged at most."""


class Inbox(Generic[M]):
    """Reads the messages that are sent to partition 0 of a topic after the start. With `keys`, only messages with one of these keys are read."""

    def __init__(
        self, kafka: Kafka, topic: Topic, codec: Codec[M], keys: Container[bytes] | None = None
    ) -> None:
        self._kafka = kafka
        self._topic = topic
        self._codec = codec
        self._keys = keys
        self._reader: Reader | None = None
        self.probes = Probes()
        self._read_to = 0
        self._logged_at = -LOG_SECONDS
        self.passed_over = 0
        """How many messages were skipped, as they were unreadable or lacked a required signature."""

    async def start(self) -> None:
        """Create the topic if it is missing, and begin to read at its end. Messages sent after the call returns are received."""
        await self._kafka.ensure([self._topic])
        self._reader = await self._kafka.reader(self._topic.name)
        await self._reader.assign_end()

    async def close(self) -> None:
        """Stop reading. Messages that were not polled are lost to this reader."""
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    @property
    def is_open(self) -> bool:
        """Whether messages are read now."""
        return self._reader is not None

    async def probe(self) -> None:
        """Send a probe, a tiny message, into the topic. It is read again once the messages before it were polled."""
        await self._kafka.send_many(self._topic.name, *self.probes.prepare([0], self._topic.partitions))

    def probe_health(self) -> ConsumerHealth:
        """Return whether the probes of this inbox come back, and how fast."""
        return self.probes.health(self._topic.name, 1)

    def hurry(self) -> None:
        """Fetch again without a pause, because a message is expected."""
        if self._reader is not None:
            self._reader.hurry()

    async def poll(self, timeout_seconds: float, limit: int = 1_000) -> list[M]:
        """Return up to `limit` new messages; empty if none came within `timeout_seconds`. Unreadable ones are logged and skipped."""
        assert self._reader is not None
        # The caller has handled the messages of the last poll.
        self.probes.moved({0: self._read_to})
        records = [each for each in await self._reader.poll(timeout_seconds, limit) if self._is_ours(each)]
        if not all(map(is_probe, records)):
            self._reader.hurry()
        return await self._decoded(records)

    async def _decoded(self, records: Sequence[Message]) -> list[M]:
        """Decode records, with pauses so that many large messages do not block the event loop."""
        found = []
        bytes_read = 0
        for record in records:
            self._read_to = record.offset + 1
            if self.probes.recognise(record):
                continue
            bytes_read += len(record.payload)
            if bytes_read > STEP_BYTES:
                bytes_read = 0
                await asyncio.sleep(0)
            try:
                found.append(self._codec.decode(record.payload))
            except Rejected as fault:
                self._pass_over(fault)
        return found

    def _pass_over(self, fault: Rejected) -> None:
        """Count a skipped message, and log it at most once in `LOG_SECONDS`."""
        self.passed_over += 1
        now = time.monotonic()
        if now - self._logged_at > LOG_SECONDS:
            self._logged_at = now
            log.warning(
                "inbox message passed over", topic=self._topic.name, error=str(fault), so_far=self.passed_over
            )

    def _is_ours(self, record: Message) -> bool:
        return self._keys is None or (record.key is not None and record.key in self._keys)
