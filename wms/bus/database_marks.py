"""The marks of databases in the log: how far a database had come when services last worked with it."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from wms.auth.service_signatures import ServiceSignatures
from wms.bus.kafka import Kafka
from wms.bus.reader import Reader
from wms.bus.signed import SignedCodec
from wms.errors import Rejected, Unavailable
from wms.messages.database_marks import TOPIC, DatabaseMark
from wms.messages.wire import encode

READ_SECONDS: Final = 30.0
SILENT_SECONDS: Final = 3.0
"""For how many seconds no mark comes where no database is worked with. Job managers send one each second."""
_POLL_SECONDS = 0.1
_POLL_LIMIT = 5_000


class LoggedMarks(msgspec.Struct, frozen=True):
    """The marks that were read from the log, in its order, and the offset behind them."""

    marks: Sequence[DatabaseMark]
    until: int


class DatabaseMarks:
    """Writes and reads the marks. `notices` signs them: a mark that no service has signed is ignored."""

    def __init__(self, kafka: Kafka, notices: ServiceSignatures) -> None:
        self.kafka = kafka
        self._notices = notices
        self._codec: SignedCodec[DatabaseMark] = SignedCodec(DatabaseMark, TOPIC, notices, again=True)

    async def write(self, mark: DatabaseMark) -> int:
        """Send a mark, and return its offset once Kafka has stored it. Raise Unavailable if it may not have arrived."""
        payload = self._notices.sign(TOPIC, encode(mark))
        return await self.kafka.append(TOPIC, 0, payload, mark.incarnation_id.encode())

    async def read(self, since: int) -> LoggedMarks:
        """Return all marks from the offset `since` on. Raise Unavailable if the broker does not answer."""
        return await self._read(since, 0.0)

    async def read_news(self, since: int) -> LoggedMarks:
        """Wait `SILENT_SECONDS`, and return the marks from the offset `since` on. Raise Unavailable if the broker does not answer."""
        return await self._read(since, SILENT_SECONDS)

    async def _read(self, since: int, wait_seconds: float) -> LoggedMarks:
        reader = await self.kafka.reader(TOPIC)
        try:
            async with asyncio.timeout(READ_SECONDS + wait_seconds):
                await asyncio.sleep(wait_seconds)
                return await self._to_the_end(reader, since)
        except TimeoutError:
            raise Unavailable(f"{TOPIC}: its end was not reached in {READ_SECONDS:g} s") from None
        finally:
            await reader.close()

    async def _to_the_end(self, reader: Reader, since: int) -> LoggedMarks:
        reader.assign({0: since})
        marks: list[DatabaseMark] = []
        until = since
        while True:
            answered = reader.answered_at()
            found = await reader.poll(_POLL_SECONDS, _POLL_LIMIT)
            for record in found:
                until = record.offset + 1
                try:
                    marks.append(self._codec.decode(record.payload))
                except Rejected:
                    continue
            if not found and reader.answered_at() > answered and not await reader.unread():
                return LoggedMarks(marks, until)
