"""Reads given partitions of one Kafka topic from given offsets on. Records that cannot be read are reported as faulty and skipped."""

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import ConsumerStoppedError, KafkaError

from wms.bus.decompression import FAULT, bound_expansion
from wms.bus.pacing import Pacing, fetch_wait_ms
from wms.errors import Unavailable

log = structlog.get_logger()

bound_expansion()

HEADER = "authorization"
"""The Kafka header that carries the sender's token. Payloads never contain it."""

TOKEN_LIMIT = 16_384

LAST_TIME = 253_402_300_799
"""The last second of the year 9999, in seconds since 1970: no later time can be stored."""

LITTLE_BYTES = 262_144
"""After a fetch with fewer bytes of payloads than this, the next messages are not fetched ahead."""


class Message(msgspec.Struct, frozen=True):
    """A record as it was read from a partition of a topic."""

    partition: int
    offset: int
    key: bytes | None
    payload: bytes
    token: str
    """The sender's token, without `Bearer `; empty if the record has none."""
    fault: str = ""
    """Why the record cannot be read; empty if it can.

    A faulty record stands for all records after the previous readable one, up to its own offset.
    """
    sent_at: float = 0.0
    """When the record was sent, in seconds since 1970: by its sender's clock, or the broker's if the topic is so configured."""

    @property
    def time(self) -> datetime | None:
        """`sent_at` as a time; None if the record has none. A sender may say any number: it is taken for at most the year 9999."""
        return datetime.fromtimestamp(min(self.sent_at, LAST_TIME), UTC) if self.sent_at > 0 else None

    @property
    def size(self) -> int:
        """The size of the record's payload in bytes."""
        return len(self.payload)


class Reader:
    """Reads given partitions of one Kafka topic from given offsets on."""

    def __init__(self, topic: str, connection: Mapping[str, Any], client_id: str, wait_ms: int) -> None:
        self.topic = topic
        self._pacing = Pacing() if wait_ms == 0 else None
        self._consumer = AIOKafkaConsumer(
            **connection,
            client_id=client_id,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=wait_ms,
            max_partition_fetch_bytes=4_194_304,
            fetch_max_bytes=16_777_216,
            check_crcs=False,
            request_timeout_ms=20_000,
        )

    async def start(self) -> None:
        """Connect to the Kafka broker. Nothing is read before `assign`. Raise Unavailable if no broker answers."""
        try:
            async with asyncio.timeout(20):
                await self._consumer.start()
        except (KafkaError, OSError) as error:
            await self.close()
            raise Unavailable(f"{self.topic}: no broker to read from: {error}") from error
        if self._pacing is not None:
            self._pace_fetches(self._pacing)

    def _pace_fetches(self, pacing: Pacing) -> None:
        # The library fetches again as soon as it is answered, and has no other hook for a pause.
        fetcher = self._consumer._fetcher  # noqa: SLF001
        fetch = fetcher._proc_fetch_request  # noqa: SLF001

        async def paced(assignment: Any, node_id: Any, request: Any) -> bool:
            request._max_wait_ms = fetch_wait_ms(behind=self._is_behind(request))  # noqa: SLF001
            found: bool = await fetch(assignment, node_id, request)
            if not found:
                if self._is_behind(request):
                    pacing.hurry()
                # As in the library, no cancellation is raised: closing the library's fetcher would stop half-way.
                with contextlib.suppress(asyncio.CancelledError):
                    await pacing.rest()
            return found

        fetcher._proc_fetch_request = paced  # noqa: SLF001

    def _is_behind(self, request: Any) -> bool:
        """Return whether a fetch request asks for messages that are known to exist already."""
        return any(
            self.high_water(partition) > offset
            for _, partitions in request.topics
            for partition, offset, _ in partitions
        )

    def hurry(self) -> None:
        """Fetch again without a pause, because a message came or is expected."""
        if self._pacing is not None:
            self._pacing.hurry()

    async def close(self) -> None:
        """Disconnect; never raises."""
        await quietly(self._consumer.stop(), 5)

    def assign(self, offsets: dict[int, int]) -> None:
        """Read exactly these partitions from now on, each from its offset in `offsets`."""
        self._consumer.assign([self._place(partition) for partition in offsets])
        for partition, offset in offsets.items():
            self._consumer.seek(self._place(partition), offset)

    async def assign_end(self, partitions: int = 1) -> None:
        """Read the partitions 0 to `partitions` - 1 from their present ends on.

        All messages sent after the call are read, perhaps also a few earlier ones. Raise Unavailable if the Kafka broker fails.
        """
        places = [self._place(number) for number in range(partitions)]
        self._consumer.assign(places)
        try:
            async with asyncio.timeout(20):
                await self._consumer.seek_to_end(*places)
        except (KafkaError, OSError) as error:
            raise Unavailable(f"{self.topic}: no end to read from: {error!r}") from error
        for place in places:
            await self._position(place)

    async def poll(self, timeout_seconds: float, limit: int) -> list[Message]:
        """Return up to `limit` new messages, in order within each partition; empty if none came within `timeout_seconds`.

        Raise Unavailable if the Kafka broker fails. After a small result nothing is fetched ahead: a fetch would bring the present
        messages, and later ones would wait for another fetch. After a large result the next messages are fetched meanwhile.
        """
        self._consumer.resume(*self._consumer.paused())
        try:
            found = await self._consumer.getmany(timeout_ms=int(timeout_seconds * 1000), max_records=limit)
        except (KafkaError, ConsumerStoppedError, OSError) as error:
            raise Unavailable(f"{self.topic}: not read: {error!r}") from error
        except Exception:  # noqa: BLE001 - a record that is none; the library names neither it nor its partition
            return await self._poll_singly(limit)
        messages = [_message(record) for records in found.values() for record in records]
        if messages and sum(len(each.payload) for each in messages) < LITTLE_BYTES:
            self._consumer.pause(*self._consumer.assignment())
        return messages

    async def _poll_singly(self, limit: int) -> list[Message]:
        """Read one record at a time, and stop at the first one that cannot be read. That one is returned last, as a faulty message."""
        found: list[Message] = []
        for place in self._consumer.assignment():
            # Seeking drops the fetched messages, and with them the half-read batch that failed.
            self._consumer.seek(place, await self._position(place))
            for _ in range(limit):
                try:
                    one = await self._consumer.getmany(place, timeout_ms=500, max_records=1)
                except (KafkaError, ConsumerStoppedError, OSError) as error:
                    raise Unavailable(f"{self.topic}: not read: {error!r}") from error
                except Exception as error:  # noqa: BLE001 - this is the record
                    position = await self._position(place)
                    where = f"{place.partition}:{position}"
                    log.warning("record passed over", topic=self.topic, where=where, error=repr(error))
                    self._consumer.seek(place, position + 1)
                    fault = f"a record that cannot be read: {error!r}"
                    return [*found, Message(place.partition, position, None, b"", "", fault)]
                if not one:
                    break
                found += [_message(record) for record in one[place]]
        return found

    async def positions(self) -> dict[int, int]:
        """Return the offset of the next record of each assigned partition. Raise Unavailable if the broker fails."""
        return {place.partition: await self._position(place) for place in self._consumer.assignment()}

    async def log_start(self, partition: int) -> int:
        """Ask for the offset of the oldest record that the broker still has. Raise Unavailable if the broker fails."""
        place = self._place(partition)
        try:
            return int((await self._consumer.beginning_offsets([place]))[place])
        except (KafkaError, OSError) as error:
            raise Unavailable(f"{self.topic}: no beginning to read from: {error!r}") from error

    async def _position(self, place: TopicPartition) -> int:
        try:
            async with asyncio.timeout(20):
                return int(await self._consumer.position(place))
        except (KafkaError, OSError) as error:
            raise Unavailable(f"{self.topic}: no position to read from: {error!r}") from error

    def high_water(self, partition: int) -> int:
        """Return the offset after the last message of a partition, by the last fetch; 0 before the first."""
        return self._consumer.highwater(self._place(partition)) or 0

    async def unread(self) -> int:
        """Return how many messages `poll` has not returned yet, by the Kafka broker's last answers."""
        return sum([await self.unread_of(place.partition) for place in self._consumer.assignment()])

    async def unread_of(self, partition: int) -> int:
        """Return how many messages of one partition `poll` has not returned yet, by the Kafka broker's last answer."""
        return max(0, self.high_water(partition) - await self._position(self._place(partition)))

    def answered_at(self, partition: int | None = None) -> int:
        """Return when the Kafka broker last answered for the partition, in milliseconds since 1970; 0 if it never did.

        For None return the oldest of these times over all assigned partitions.
        """
        places = self._consumer.assignment() if partition is None else [self._place(partition)]
        return min((self._consumer.last_poll_timestamp(place) or 0 for place in places), default=0)

    def _place(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)


async def quietly(closing: Coroutine[Any, Any, None], within: float) -> None:
    """Await `closing`, which closes an object of the Kafka library, for at most `within` seconds; ignore its errors.

    It runs in a task of its own. The library cancels its tasks and raises the cancellation as if the caller were cancelled.
    """
    task = asyncio.ensure_future(closing)
    try:
        await asyncio.wait([task], timeout=within)
    finally:
        task.cancel()
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def _message(record: Any) -> Message:
    if record.value is None and record.headers and record.headers[0][0] is FAULT:
        return Message(record.partition, record.offset, None, b"", "", record.headers[0][1])
    token = next((value for name, value in record.headers if name == HEADER), None) or b""
    return Message(
        record.partition,
        record.offset,
        record.key,
        record.value or b"",
        token[:TOKEN_LIMIT].decode("ascii", "replace").removeprefix("Bearer "),
        sent_at=record.timestamp / 1_000,
    )
