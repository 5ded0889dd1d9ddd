"""`GET /events`: the state changes of a user's own jobs as server-sent events, without loss or repetition after a reconnect.

The id of an event is a position in the topic (`event_cursor`), so that a client can continue at any gateway. Some records before that
position are read again, to recognise repetitions. The relay (the part that publishes events from the database) may send a record twice.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from services.gateway.event_cursor import EventCursor, cursor_of
from services.gateway.event_record import EventRecord
from services.gateway.operation import STREAM_TYPE, NoParameters, Operation
from services.gateway.own_events import OwnEvents
from services.gateway.problem import TooMany
from services.gateway.service_requests import Desk
from wms.auth.policy import scope
from wms.auth.principal import Principal
from wms.errors import Rejected, Unavailable
from wms.runtime import clock

QUIET_SECONDS: Final = 15.0
"""After this many seconds without an event, the stream sends only its position, so that a dead connection is noticed."""
CHECK_SECONDS: Final = 3.0
"""How often, at least, a stream checks whether its token has expired or was revoked, in seconds. If so, the stream ends."""
AT_ONCE: Final = 100
"""The number of records that a stream takes from memory before other tasks run."""
AGAIN_SECONDS: Final = 1.0
REACHED_SECONDS: Final = 5.0
"""How long, in seconds, a stream waits until this gateway has read up to the client's position.

After that it sends `reset` and continues from the topic's end.
"""
SEEN_BEFORE: Final = 500
"""The number of records in each partition before the client's position that are read again, to recognise repetitions."""
STREAMS_OF_OWNER: Final = 50
ID_HEADER: Final = "last-event-id"

EVENTS: Final = Operation(
    method="GET",
    path="/events",
    summary="The moves of your own jobs as they happen; `Last-Event-ID` goes on from an event",
    parameters=NoParameters,
    answer=None,
    answer_type=STREAM_TYPE,
    goes_on=True,
)


class EventStreams:
    """The endpoint `GET /events`, which bounds the number of open streams of each owner."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._open = Counter[str]()

    async def respond(self, request: Request) -> Response:
        """Return the stream. It ends when the token expires or is revoked, the gateway shuts down, or the client disconnects.

        Raise Rejected if the token may see no jobs, or `Last-Event-ID` is malformed. Raise TooMany if the owner has 50 streams open.
        """
        credential, principal = self._desk.admit_as(request)
        if scope(principal, "see").reach == "nothing":
            raise Rejected("NOT_ALLOWED", f"a {principal.kind}'s token follows no jobs", "use a user's token")
        received_at = request.headers.get(ID_HEADER)
        at = cursor_of(received_at) if received_at else None
        if received_at and at is None:
            raise Rejected("BAD_EVENT_ID", "the last event's id is none of this system", "leave it out")
        if self._open[principal.owner] >= STREAMS_OF_OWNER:
            raise TooMany(f"{principal.owner} has {STREAMS_OF_OWNER} streams open", 10)
        stream = EventStream(self._desk, principal, credential.expires_at, at)
        return StreamingResponse(
            self._counted(stream, principal.owner),
            media_type=STREAM_TYPE,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _counted(self, stream: "EventStream", owner: str) -> AsyncIterator[bytes]:
        self._open[owner] += 1
        try:
            async for piece in stream.pieces():
                yield piece
                if stream.is_over():
                    return
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]


class EventStream:
    """One client's stream of events from the position `at` on; None: from the topic's end. `expires_at` ends it, in seconds since 1970."""

    def __init__(self, desk: Desk, principal: Principal, expires_at: float, at: EventCursor | None) -> None:
        self._authentication = desk.authentication
        self._principal = principal
        self._expires_at = expires_at
        self._feed = desk.feed
        self._older = desk.older
        self._ending = desk.ending
        self._own = OwnEvents(principal)
        self._from = at

    def is_over(self) -> bool:
        """Return whether the stream must end: the gateway shuts down, or the token has expired or was revoked."""
        return self._ending.is_set() or clock.timestamp() >= self._expires_at or self._is_revoked()

    def _is_revoked(self) -> bool:
        try:
            self._authentication.check_kept(self._principal)
        except Rejected:
            return True
        return False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield encoded server-sent events until the stream must end. A `reset` event says that events may have been lost."""
        end = await self._feed.end()
        if self._from is not None and self._from.cluster == end.cluster:
            # The gateway that sent this position may have read further than this one.
            end = await self._feed.reached(self._from, REACHED_SECONDS)
        if self._from is not None and not self._from.is_before(end):
            yield _block("reset", b'{"reason":"the broker has begun anew"}', end)
            self._from = None
        self._at = self._from or end
        yield _block("", b"", self._at)
        place = self._at.back(SEEN_BEFORE)
        while not self.is_over():
            async with contextlib.aclosing(self._caught_up(place)) as older:
                async for records in older:
                    if told := b"".join(map(self._past, records)):
                        yield told
            async with contextlib.aclosing(self._followed()) as pieces:
                async for told in pieces:
                    yield told
            place = self._at

    async def _caught_up(self, place: EventCursor) -> AsyncGenerator[Sequence[EventRecord], None]:
        """Yield the existing records from `place` on, in batches, until the newest was yielded."""
        while not self._ending.is_set():
            if not self._feed.covers(place):
                async with contextlib.aclosing(self._older_than_kept(place)) as older:
                    async for records in older:
                        yield records
                        place = place.past_all(records)
                continue
            records = self._feed.after(place)[:AT_ONCE]
            if not records:
                return
            yield records
            await asyncio.sleep(0)
            place = place.past_all(records)

    async def _older_than_kept(self, place: EventCursor) -> AsyncGenerator[Sequence[EventRecord], None]:
        """Yield batches of records from the broker, until the following ones are in memory. If no broker answers, return after a second."""
        try:
            async with contextlib.aclosing(self._older.read(self._own.owner, place)) as older:
                async for records in older:
                    yield records
                    place = place.past_all(records)
                    if self._feed.covers(place) or self._ending.is_set():
                        return
        except Unavailable:
            await asyncio.sleep(AGAIN_SECONDS)

    async def _followed(self) -> AsyncGenerator[bytes, None]:
        """Yield new events as they come, until the follower misses some or the stream must end.

        After `QUIET_SECONDS` without an event, yield the position.
        """
        with self._feed.followers.following(self._own.owner) as follower:
            if self._feed.after(self._at):
                return
            quiet_since = time.monotonic()
            while not (follower.has_missed or self.is_over()):
                await follower.wait(CHECK_SECONDS)
                if self.is_over():
                    return
                told = b"".join(self._live(*each) for each in follower.take())
                if not (told or follower.has_missed) and time.monotonic() - quiet_since >= QUIET_SECONDS:
                    self._at = self._feed.place()
                    told = _block("", b"", self._at)
                if told:
                    yield told
                    quiet_since = time.monotonic()

    def _live(self, record: EventRecord, at: EventCursor) -> bytes:
        self._at = at
        return self._told(record)

    def _past(self, record: EventRecord) -> bytes:
        """Return the encoded event for an existing record; empty if it does not concern the user.

        A record before the client's position is only remembered, to recognise its repetition.
        """
        expected = self._at.offsets[record.partition]
        if record.offset < expected:
            self._pick(record)
            return b""
        gone = (
            _block("reset", b'{"reason":"older events are gone"}', self._at)
            if record.offset > expected
            else b""
        )
        self._at = self._at.past(record.partition, record.offset)
        return gone + self._told(record)

    def _pick(self, record: EventRecord) -> msgspec.Struct | None:
        return self._own.pick(record.fact) if record.fact is not None else None

    def _told(self, record: EventRecord) -> bytes:
        fact = self._pick(record)
        if fact is None:
            return b""
        return _block(str(fact.__struct_config__.tag), msgspec.json.encode(fact), self._at)


def _block(event: str, data: bytes, at: EventCursor) -> bytes:
    """Return one encoded server-sent event with the position `at` as its id. Without `event` and `data` it has the id alone."""
    name = f"event: {event}\n" if event else ""
    said = b"data: " + data + b"\n" if data else b""
    return f"id: {at}\n{name}".encode() + said + b"\n"
