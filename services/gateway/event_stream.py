"""`GET /events`: the state changes of a user's own jobs as server-sent events, none missed and none twice after a reconnect.

The id of an event is the reader's position in the topic (`event_cursor`): any gateway can go on from it. Some records before
that position are read again: the relay may have sent one of them twice.
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

from services.gateway.asking import Desk
from services.gateway.event_cursor import EventCursor, cursor_of
from services.gateway.event_record import EventRecord
from services.gateway.operation import STREAM_TYPE, NoParameters, Operation
from services.gateway.own_events import OwnEvents
from services.gateway.problem import TooMany
from wms.auth.policy import scope
from wms.auth.principal import Principal
from wms.errors import Rejected, Unavailable
from wms.runtime import clock

QUIET_SECONDS: Final = 15.0
"""Seconds without an event after which the place is told, so that a connection that is dead is noticed."""
CHECK_SECONDS: Final = 3.0
"""Seconds after which it is looked whether the token of a stream was revoked or has expired. Revocations are known after a second."""
AT_ONCE: Final = 100
"""The kept records that a stream looks through before other requests get a turn."""
AGAIN_SECONDS: Final = 1.0
REACHED_SECONDS: Final = 5.0
"""Seconds in which a gateway must have read as far as another one that told the last event."""
SEEN_BEFORE: Final = 500
"""The number of records of each partition before the position that are read again, to recognise repetitions."""
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
    """The endpoint of streams of events."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._open = Counter[str]()

    async def respond(self, request: Request) -> Response:
        """Return the stream, which ends with the token, the gateway or the connection.

        Raise Rejected if the token may see no jobs, or if the last event's id is malformed. Raise TooMany if the owner has
        too many streams.
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
    """One stream of events from a position on; None: from now on."""

    def __init__(self, desk: Desk, principal: Principal, expires_at: float, at: EventCursor | None) -> None:
        self._gate = desk.gate
        self._principal = principal
        self._expires_at = expires_at
        self._feed = desk.feed
        self._older = desk.older
        self._ending = desk.ending
        self._own = OwnEvents(principal)
        self._from = at

    def is_over(self) -> bool:
        """Return whether the gateway ends, or the token has expired or was revoked."""
        return self._ending.is_set() or clock.timestamp() >= self._expires_at or self._is_revoked()

    def _is_revoked(self) -> bool:
        try:
            self._gate.check_kept(self._principal)
        except Rejected:
            return True
        return False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield server-sent events, encoded, until the stream is over."""
        end = await self._feed.end()
        if self._from is not None and self._from.cluster == end.cluster:
            # The gateway that told this place may have been somewhat ahead of this one.
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
        """Yield the records from the place on, some at a time, until there are no more."""
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
        """Yield records that are in memory no more, until the next ones are."""
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
        """Yield what comes, until something was missed. The place is told after a while without an event."""
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
        """Return what is told of a record that came before; of those before the place, nothing: their moves are kept in mind."""
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
    """Return one server-sent event, encoded. Without data it only tells the position."""
    name = f"event: {event}\n" if event else ""
    said = b"data: " + data + b"\n" if data else b""
    return f"id: {at}\n{name}".encode() + said + b"\n"
