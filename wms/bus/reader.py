"""A reader of one topic: partitions and offsets as it is told, and never stopped for good by one bad record."""

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from wms.bus.expansion import FAULT, bound_expansion
from wms.bus.pacing import Pacing, fetch_wait_ms
from wms.errors import Unavailable

log = structlog.get_logger()

bound_expansion()

HEADER = "authorization"
"""The header that carries the sender's token; a payload never does."""

TOKEN_LIMIT = 16_384

LITTLE_BYTES = 262_144
"""Of payload: less than this is fetched again in no time."""


class Message(msgspec.Struct, frozen=True):
    """What a reader brings."""

    partition: int
    offset: int
    key: bytes | None
    payload: bytes
    token: str
    """Without its `Bearer `; empty where there is none."""
    fault: str = ""
    """Why it could not be read. It stands for all records up to its offset that were not brought before."""

    @property
    def size(self) -> int:
        """Return the bytes of the payload."""
        return len(self.payload)


class Reader:
    """Reads partitions of one topic that it is told, from offsets that it is told."""

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
        """Connect, or raise Unavailable."""
        try:
            async with asyncio.timeout(20):
                await self._consumer.start()
        except (KafkaError, OSError) as error:
            await self.close()
            raise Unavailable(f"{self.topic}: no broker to read from: {error}") from error
        if self._pacing is not None:
            self._pace_fetches(self._pacing)

    def _pace_fetches(self, pacing: Pacing) -> None:
        # The library asks again as soon as it is answered, and has no other place where it could be made to wait.
        fetcher = self._consumer._fetcher  # noqa: SLF001
        fetch = fetcher._proc_fetch_request  # noqa: SLF001

        async def paced(assignment: Any, node_id: Any, request: Any) -> bool:
            request._max_wait_ms = fetch_wait_ms(behind=self._is_behind(request))  # noqa: SLF001
            found: bool = await fetch(assignment, node_id, request)
            if not found:
                if self._is_behind(request):
                    pacing.hurry()
                # As there, no cancellation is let out: whoever closes the library's fetcher would stop half-way.
                with contextlib.suppress(asyncio.CancelledError):
                    await pacing.rest()
            return found

        fetcher._proc_fetch_request = paced  # noqa: SLF001

    def _is_behind(self, request: Any) -> bool:
        """Return whether a fetch asks for what is known to be there."""
        return any(
            self.high_water(partition) > offset
            for _, partitions in request.topics
            for partition, offset, _ in partitions
        )

    def hurry(self) -> None:
        """Something has come, or is expected to: let the next come without delay, where the broker does not see to that."""
        if self._pacing is not None:
            self._pacing.hurry()

    async def close(self) -> None:
        """Disconnect; never raises."""
        await quietly(self._consumer.stop(), 5)

    def assign(self, offsets: dict[int, int]) -> None:
        """Read these partitions from these offsets on, and nothing else."""
        self._consumer.assign([self._place(partition) for partition in offsets])
        for partition, offset in offsets.items():
            self._consumer.seek(self._place(partition), offset)

    async def assign_end(self, partitions: int = 1) -> None:
        """Read that many partitions from their ends on: what is sent after this returns is seen, and perhaps a little before it."""
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
        """Return what has come, each partition's in order; empty when nothing came in time.

        While little is being handled nothing is fetched ahead: the library would bring what has come by now and have all
        that comes after it wait for a turn more. Of much the next part is fetched meanwhile.
        """
        self._consumer.resume(*self._consumer.paused())
        try:
            found = await self._consumer.getmany(timeout_ms=int(timeout_seconds * 1000), max_records=limit)
        except (KafkaError, OSError) as error:
            raise Unavailable(f"{self.topic}: not read: {error!r}") from error
        except Exception:  # noqa: BLE001 - a record that is none; the library names neither it nor its partition
            return await self._poll_singly(limit)
        messages = [_message(record) for records in found.values() for record in records]
        if messages and sum(len(each.payload) for each in messages) < LITTLE_BYTES:
            self._consumer.pause(*self._consumer.assignment())
        return messages

    async def _poll_singly(self, limit: int) -> list[Message]:
        """Return what can be read, passing over the one record that cannot."""
        found: list[Message] = []
        for place in self._consumer.assignment():
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
                    fault = f"a record that cannot be read: {error!r}"
                    return [*found, Message(place.partition, position, None, b"", "", fault)]
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

    async def unread(self) -> int:
        """Return how many messages the broker has, as of its last answers, that were not yet returned by `poll`."""
        return sum([await self.unread_of(place.partition) for place in self._consumer.assignment()])

    async def unread_of(self, partition: int) -> int:
        """Return how many messages of one partition were not yet returned by `poll`, as of the broker's last answer."""
        return max(0, self.high_water(partition) - await self._position(self._place(partition)))

    def answered_at(self, partition: int | None = None) -> int:
        """Return when, in ms, the broker last answered for the partition, or for the one it neglects most; 0 if never."""
        places = self._consumer.assignment() if partition is None else [self._place(partition)]
        return min((self._consumer.last_poll_timestamp(place) or 0 for place in places), default=0)

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
    if record.value is None and record.headers and record.headers[0][0] is FAULT:
        return Message(record.partition, record.offset, None, b"", "", record.headers[0][1])
    token = next((value for name, value in record.headers if name == HEADER), None) or b""
    return Message(
        record.partition,
        record.offset,
        record.key,
        record.value or b"",
        token[:TOKEN_LIMIT].decode("ascii", "replace").removeprefix("Bearer "),
    )
