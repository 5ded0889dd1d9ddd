"""A reader of one topic: partitions and offsets as it is told, and never stopped for good by one bad record."""

import asyncio
import time
from collections.abc import Collection, Coroutine
from typing import Any

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from wms.errors import Unavailable

log = structlog.get_logger()

HEADER = "authorization"
"""The header that carries the sender's token; a payload never does."""

TOKEN_LIMIT = 16_384

IDLE_WAIT_MS = 100
"""How long a fetch may wait where nothing has come lately. The embedded broker does not wake a fetch that waits, so that it
is told to wait shortly; but asked a hundred times a second by each reader it alone would take half a core to say no."""
IDLE_AFTER_SECONDS = 0.3
"""Shorter than the second in which an idle pilot asks again: it would never be idle otherwise."""


class Message(msgspec.Struct, frozen=True):
    """What a reader brings."""

    partition: int
    offset: int
    key: bytes | None
    payload: bytes
    token: str
    """Without its `Bearer `; empty where there is none."""


class Reader:
    """Reads partitions of one topic that it is told, from offsets that it is told."""

    def __init__(self, topic: str, bootstrap: str, client_id: str, fetch_wait_ms: int) -> None:
        self.topic = topic
        self._busy_wait_ms = fetch_wait_ms
        self._news_at = time.monotonic()
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            client_id=client_id,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=fetch_wait_ms,
            max_partition_fetch_bytes=4_194_304,
            fetch_max_bytes=16_777_216,
            check_crcs=False,
            request_timeout_ms=20_000,
        )

    async def start(self) -> None:
        """Connect, or raise Unavailable."""
        try:
            async with asyncio.timeout(20):
                await self._consumer.start()
        except (KafkaError, OSError) as error:
            await self.close()
            raise Unavailable(f"{self.topic}: no broker to read from: {error}") from error

    async def close(self) -> None:
        """Disconnect; never raises."""
        await quietly(self._consumer.stop(), 5)

    def assign(self, offsets: dict[int, int]) -> None:
        """Read these partitions from these offsets on, and nothing else."""
        self._consumer.assign([self._place(partition) for partition in offsets])
        for partition, offset in offsets.items():
            self._consumer.seek(self._place(partition), offset)

    async def assign_end(self) -> None:
        """Read partition 0 from its end on: what is sent after this returns is seen, and perhaps a little before it."""
        partition = self._place(0)
        self._consumer.assign([partition])
        try:
            async with asyncio.timeout(20):
                await self._consumer.seek_to_end(partition)
        except (KafkaError, OSError) as error:
            raise Unavailable(f"{self.topic}: no end to read from: {error!r}") from error
        await self._position(partition)

    async def poll(
        self, timeout_seconds: float, limit: int, partitions: Collection[int] | None = None
    ) -> list[Message]:
        """Return what has come, of some partitions or of all: each one's in order; empty when nothing came in time."""
        places = self._places(partitions)
        try:
            found = await self._consumer.getmany(
                *places, timeout_ms=int(timeout_seconds * 1000), max_records=limit
            )
        except (KafkaError, OSError) as error:
            raise Unavailable(f"{self.topic}: not read: {error!r}") from error
        except Exception:  # noqa: BLE001 - a record that is none; the library names neither it nor its partition
            return await self._poll_singly(limit, places)
        self._set_pace(news=bool(found))
        return [_message(record) for records in found.values() for record in records]

    def _set_pace(self, *, news: bool) -> None:
        """Let fetches wait for longer where nothing comes."""
        now = time.monotonic()
        if news:
            self._news_at = now
        idle = now - self._news_at > IDLE_AFTER_SECONDS
        wait_ms = max(self._busy_wait_ms, IDLE_WAIT_MS) if idle else self._busy_wait_ms
        # The library reads it anew for each fetch and has no other way to change it.
        self._consumer._fetcher._fetch_max_wait_ms = wait_ms  # noqa: SLF001

    async def _poll_singly(self, limit: int, places: Collection[TopicPartition]) -> list[Message]:
        """Return what can be read, passing over the one record that cannot."""
        found: list[Message] = []
        for place in places:
            # To seek throws away what was fetched, and with it the half-read batch that failed.
            self._consumer.seek(place, await self._position(place))
            for _ in range(limit):
                try:
                    one = await self._consumer.getmany(place, timeout_ms=500, max_records=1)
                except (KafkaError, OSError) as error:
                    raise Unavailable(f"{self.topic}: not read: {error!r}") from error
                except Exception as error:  # noqa: BLE001 - this is the record
                    position = await self._position(place)
                    where = f"{place.partition}:{position}"
                    log.warning("record passed over", topic=self.topic, where=where, error=repr(error))
                    self._consumer.seek(place, position + 1)
                    return found
                if not one:
                    break
                found += [_message(record) for record in one[place]]
        return found

    async def _position(self, place: TopicPartition) -> int:
        try:
            async with asyncio.timeout(20):
                return int(await self._consumer.position(place))
        except (KafkaError, OSError) as error:
            raise Unavailable(f"{self.topic}: no position to read from: {error!r}") from error

    def high_water(self, partition: int) -> int:
        """Return the end of the partition's log as the last fetch told it."""
        return self._consumer.highwater(self._place(partition)) or 0

    async def unread(self, partitions: Collection[int] | None = None) -> int:
        """Return how many messages the broker has, as of its last answers, that were not yet returned by `poll`."""
        return sum(
            [
                max(0, self.high_water(place.partition) - await self._position(place))
                for place in self._places(partitions)
            ]
        )

    def answered_at(self, partitions: Collection[int] | None = None) -> int:
        """Return when, in ms, the broker last answered for the partition it neglects most; 0 if it never did for one."""
        times = [self._consumer.last_poll_timestamp(place) for place in self._places(partitions)]
        return min((each or 0 for each in times), default=0)

    def _places(self, partitions: Collection[int] | None) -> Collection[TopicPartition]:
        """Return these partitions, or all that are read."""
        if partitions is None:
            assigned: Collection[TopicPartition] = self._consumer.assignment()
            return assigned
        return [self._place(partition) for partition in partitions]

    def _place(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)


async def quietly(closing: Coroutine[Any, Any, None], within: float) -> None:
    """Close something of the library's, whatever comes of it.

    In a task of its own: the library cancels tasks of its own and lets that out as if it were we who were cancelled, upon
    which the caller would end without a word.
    """
    task = asyncio.ensure_future(closing)
    try:
        await asyncio.wait([task], timeout=within)
    finally:
        task.cancel()
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def _message(record: Any) -> Message:
    token = next((value for name, value in record.headers if name == HEADER), None) or b""
    return Message(
        record.partition,
        record.offset,
        record.key,
        record.value or b"",
        token[:TOKEN_LIMIT].decode("ascii", "replace").removeprefix("Bearer "),
    )
