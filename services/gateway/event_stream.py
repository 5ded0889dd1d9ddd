"""`GET /events`: the moves of a user's own jobs as server-sent events, none missed and none twice over a reconnect.

The id of an event is the reader's place in the topic (`event_cursor`), so that any gateway can go on from it. Records before that place
are looked through again: the relay may have sent one of them twice, around the place.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from services.gateway.asking import Desk
from services.gateway.event_cursor import EventCursor, cursor_of
from services.gateway.event_feed import READ_AT_ONCE, EventFeed, EventRecord, parsed
from services.gateway.operation import STREAM_TYPE, NoParameters, Operation
from services.gateway.own_events import OwnEvents
from services.gateway.problem import TooMany
from wms.auth.policy import scope
from wms.auth.principal import Principal
from wms.errors import Rejected, Unavailable
from wms.runtime import clock

QUIET_SECONDS: Final = 15.0
"""Seconds without an event after which the place is told, so that a connection that is dead is noticed."""
SEEN_BEFORE: Final = 500
"""The records of each partition before the place that are looked through for repetitions."""
STREAMS_OF_OWNER: Final = 50
ID_HEADER: Final = "last-event-id"

EVENTS: Final = Operation(
    method="GET",
    path="/events",
    summary="The moves of your own jobs as they happen; `Last-Event-ID` goes on from an event",
    parameters=NoParameters,
    answer=None,
    answer_type=STREAM_TYPE,
)


class EventStreams:
    """The endpoint."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._open = Counter[str]()

    async def respond(self, request: Request) -> Response:
        """Return the stream, which ends with the token, the gateway or the connection."""
        credential, principal = self._desk.admit_as(request)
        if scope(principal, "see").reach == "nothing":
            raise Rejected("NOT_ALLOWED", f"a {principal.kind}'s token follows no jobs", "use a user's token")
        received_at = request.headers.get(ID_HEADER)
        at = cursor_of(received_at) if received_at else None
        if received_at and at is None:
            raise Rejected("BAD_EVENT_ID", "the last event's id is none of this system", "leave it out")
        if self._open[principal.owner] >= STREAMS_OF_OWNER:
            raise TooMany(f"{principal.owner} has {STREAMS_OF_OWNER} streams open", 10)
        stream = EventStream(self._desk.feed, principal, at, self._desk.ending)
        return StreamingResponse(
            self._counted(stream, principal.owner, credential.expires_at),
            media_type=STREAM_TYPE,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _counted(self, stream: "EventStream", owner: str, expires_at: float) -> AsyncIterator[bytes]:
        self._open[owner] += 1
        try:
            async for piece in stream.pieces():
                yield piece
                if clock.timestamp() >= expires_at:
                    return
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]


class EventStream:
    """One stream, from a place on; without one, from now on."""

    def __init__(
        self, feed: EventFeed, principal: Principal, at: EventCursor | None, ending: asyncio.Event
    ) -> None:
        self._feed = feed
        self._own = OwnEvents(principal)
        self._at = at
        self._ending = ending

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield server-sent events until the gateway ends."""
        end = await self._feed.end()
        if self._at is not None and not _is_before(self._at, end):
            yield _block("reset", b'{"reason":"the broker has begun anew"}', end)
            self._at = end
        at = self._at or end
        yield _block("", b"", at)
        async for record in self._records(at):
            if record is None:
                yield _block("", b"", at)
                continue
            if record.offset < at.offsets[record.partition]:
                # It was sent before the place; only its moves are kept in mind.
                self._pick(record)
                continue
            if record.offset > at.offsets[record.partition]:
                yield _block("reset", b'{"reason":"older events are gone"}', at)
            at = at.past(record.partition, record.offset)
            if piece := self._told(record, at):
                yield piece

    async def _records(self, at: EventCursor) -> AsyncIterator[EventRecord | None]:
        """Yield the records from somewhat before the place on; None after a while without one."""
        place = at.back(SEEN_BEFORE)
        while not self._ending.is_set():
            if not self._feed.covers(place):
                async with contextlib.aclosing(self._older(place)) as older:
                    async for record in older:
                        yield record
                        place = place.past(record.partition, record.offset)
                continue
            records = self._feed.after(place)
            for record in records:
                yield record
                place = place.past(record.partition, record.offset)
            if not records:
                await self._feed.news(QUIET_SECONDS)
                if not self._feed.after(place):
                    yield None

    async def _older(self, place: EventCursor) -> AsyncGenerator[EventRecord, None]:
        """Yield records that are in memory no more, until the next ones are."""
        try:
            reader = await self._feed.reader_from(place)
        except Unavailable:
            await asyncio.sleep(1.0)
            return
        try:
            while not (self._feed.covers(place) or self._ending.is_set()):
                for message in await reader.poll(1.0, READ_AT_ONCE):
                    yield parsed(message)
                    place = place.past(message.partition, message.offset)
        except Unavailable:
            return
        finally:
            # In a task of its own: a stream whose reader went away is cancelled, and would not be let wait here.
            closing.add(task := asyncio.create_task(reader.close()))
            task.add_done_callback(closing.discard)

    def _pick(self, record: EventRecord) -> msgspec.Struct | None:
        return self._own.pick(record.fact) if record.fact is not None else None

    def _told(self, record: EventRecord, at: EventCursor) -> bytes:
        fact = self._pick(record)
        if fact is None:
            return b""
        return _block(str(fact.__struct_config__.tag), msgspec.json.encode(fact), at)


closing: set[asyncio.Task[None]] = set()
"""Readers that are being closed."""


def _is_before(at: EventCursor, end: EventCursor) -> bool:
    return at.cluster == end.cluster and all(
        mine <= last for mine, last in zip(at.offsets, end.offsets, strict=True)
    )


def _block(event: str, data: bytes, at: EventCursor) -> bytes:
    """Return one server-sent event; without data it only says the place."""
    name = f"event: {event}\n" if event else ""
    said = b"data: " + data + b"\n" if data else b""
    return f"id: {at}\n{name}".encode() + said + b"\n"
