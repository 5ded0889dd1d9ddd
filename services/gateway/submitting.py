"""Submissions: one job, a list of jobs, or a stream of lines that is never held whole in memory."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import received
from services.gateway.asking import Desk, json_response
from services.gateway.operation import CREATED, JSON_TYPE, Operation
from wms.client.channel import Channel
from wms.client.submission import Messages, Submission, messages
from wms.client.submitting import send
from wms.errors import Rejected, Unavailable, WmsError
from wms.jobdesc.description import JobDescription
from wms.jobdesc.from_json import read_json

JSON_LIMIT: Final = 8 * 1024 * 1024
"""The most bytes of a submission that is no stream."""
SMALL_BYTES: Final = 65_536
"""The bytes up to which a submission is read at once, without waiting for a turn."""
LINE_LIMIT: Final = 900_000
"""The greatest size in bytes of a line: what fits into one message."""
LINES: Final = 1_000
"""The number of lines of a stream that are submitted together."""
PART_BYTES: Final = 2_000_000
AT_ONCE: Final = 4
"""The number of parts of a stream that may wait for their answers at a time."""
TOLD_LIMIT: Final = 100
"""The greatest number of warnings, and of jobs that could run nowhere, that the answer to a stream names."""
LINES_TYPE: Final = "application/x-ndjson"

Turn: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]

_decoder = msgspec.json.Decoder(JobDescription)


class SubmissionTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a submission."""

    strict: bool = False
    """Whether to refuse all jobs if some job could run nowhere now; of a stream, all jobs of a part."""
    hold: bool = False
    """Whether the jobs are Held until they are released."""


SUBMIT: Final = Operation(
    method="POST",
    path="/jobs",
    summary="Submit a job, a list of jobs, or a stream with one a line",
    parameters=SubmissionTerms,
    body=JobDescription | tuple[JobDescription, ...],
    body_types=(JSON_TYPE, LINES_TYPE),
    answer=Submission,
    status=CREATED,
)


class Submitting:
    """The endpoint of submissions."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Return the response with the ids of the jobs, once all are accepted and durable.

        Raise Rejected if the submission is malformed or refused, Unavailable if no answer comes in time.
        """
        settings = self._desk.settings
        credential = self._desk.admit(request)
        terms = received.parameters(request, SubmissionTerms)
        name = received.request_id(request)
        kind = received.require_type(request, *SUBMIT.body_types)
        channel = self._desk.callers.channel(credential)
        turn = partial(self._desk.turns.turn, credential.owner)
        stream = SubmissionStream(channel, settings.answer_seconds, turn, name, terms)
        if kind == LINES_TYPE:
            lines = received.pieces(request, settings.read_seconds)
            return json_response(await stream.take(parts_of(lines)), CREATED)
        raw = await received.whole(request, JSON_LIMIT, settings.read_seconds)
        return json_response(await stream.submit(raw), CREATED)


class SubmissionStream:
    """One submission in parts, each under an id of its own, so that the whole can be sent again."""

    def __init__(
        self, channel: Channel, seconds: float, turn: Turn, name: str, terms: SubmissionTerms
    ) -> None:
        """`turn` waits for a turn of the user, in which what was sent is read."""
        self._channel = channel
        self._seconds = seconds
        self._turn = turn
        self._name = name
        self._terms = terms

    async def submit(self, raw: bytes) -> Submission:
        """Submit the jobs of a JSON document."""
        if len(raw) <= SMALL_BYTES:
            whole = self._messages_of(raw)
        else:
            async with self._turn():
                whole = await asyncio.to_thread(self._messages_of, raw)
        return await self._send(whole, self._name)

    def _messages_of(self, raw: bytes) -> Messages:
        return self._messages(read_json(raw, JSON_LIMIT), self._name)

    def _messages(self, jobs: Sequence[JobDescription], name: str) -> Messages:
        terms = self._terms
        return messages(jobs, name, self._channel.client, strict=terms.strict, hold=terms.hold)

    async def _send(self, whole: Messages, name: str) -> Submission:
        return await send(self._channel, self._seconds, whole, name, strict=self._terms.strict)

    async def take(self, parts: AsyncIterator["Lines"]) -> Submission:
        """Submit the parts as they come, a few at a time. A fault tells how much was taken before it."""
        under_way = deque[asyncio.Task[Submission]]()
        taken: list[Submission] = []
        try:
            await self._take(parts, under_way, taken)
        except WmsError as fault:
            # The others may have been taken, and the answer is to tell how much was.
            rest = await asyncio.gather(*under_way, return_exceptions=True)
            taken += [each for each in rest if isinstance(each, Submission)]
            raise _partly(fault, self._name, taken) from None
        finally:
            for task in under_way:
                task.cancel()
        if not taken:
            raise Rejected("NO_JOBS", "there is nothing to submit", "send a description a line")
        return merged(self._name, taken)

    async def _take(
        self,
        parts: AsyncIterator["Lines"],
        under_way: deque[asyncio.Task[Submission]],
        taken: list[Submission],
    ) -> None:
        async for part in parts:
            name = f"{self._name}/lines-{part.number}"
            async with self._turn():
                whole = self._messages(descriptions(part.lines, part.before), name)
            under_way.append(asyncio.create_task(self._send(whole, name), name="submit part"))
            if len(under_way) >= AT_ONCE:
                taken.append(await under_way.popleft())
        while under_way:
            taken.append(await under_way.popleft())


class Lines(msgspec.Struct, frozen=True):
    """The lines that are submitted together."""

    number: int
    """Their place among such parts, from 0 on."""
    before: int
    """How many lines came before."""
    lines: list[bytes]


async def parts_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[Lines]:
    """Yield the lines of a stream, many at a time. Rejected: a line is too long."""
    part = Lines(0, 0, [])
    size = 0
    async for line in lines_of(pieces):
        part.lines.append(line)
        size += len(line)
        if len(part.lines) >= LINES or size >= PART_BYTES:
            yield part
            part, size = Lines(part.number + 1, part.before + len(part.lines), []), 0
    if part.lines:
        yield part


async def lines_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream that are not blank. Raise Rejected if a line is longer than LINE_LIMIT."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if line and not line.isspace():
                yield line
        if len(rest) > LINE_LIMIT:
            raise Rejected(
                "LINE_TOO_LARGE", f"a line is over {LINE_LIMIT:,} bytes", "put files into `input_sandbox`"
            )
    if rest and not rest.isspace():
        yield rest


def descriptions(lines: Sequence[bytes], before: int) -> list[JobDescription]:
    """Return the descriptions of these lines, `before` of which came earlier. Rejected: with each fault of a line."""
    return [each for number, line in enumerate(lines, before + 1) for each in _read(line, number)]


def _read(line: bytes, number: int) -> Sequence[JobDescription]:
    try:
        return (_decoder.decode(line),)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The reader of documents is slower, and tells each fault with its place.
        try:
            return read_json(line, LINE_LIMIT)
        except Rejected as fault:
            raise Rejected(
                fault.code, f"line {number}: {fault.message}", fault.remedy, fault.details
            ) from None


def merged(name: str, taken: Sequence[Submission]) -> Submission:
    """Return one submission for its parts, under the id `name`. Ranges of ids that follow each other are joined."""
    return Submission(
        id=name,
        ids=_ranges([each for part in taken for each in part.ids]),
        repeated=all(part.repeated for part in taken),
        warnings=tuple(dict.fromkeys(each for part in taken for each in part.warnings))[:TOLD_LIMIT],
        foreseen=tuple(each for part in taken for each in part.foreseen)[:TOLD_LIMIT],
    )


def _ranges(ids: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join ranges of ids that follow each other, and keep their order, which is that of the descriptions."""
    found: list[tuple[int, int]] = []
    for low, high in ids:
        if found and found[-1][1] + 1 == low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def _partly(fault: WmsError, name: str, taken: Sequence[Submission]) -> WmsError:
    if not taken:
        return fault
    count = sum(part.count for part in taken)
    so_far = f"; {count:,} jobs of the lines before are submitted, under the id {name}"
    if isinstance(fault, Rejected):
        return Rejected(fault.code, fault.message + so_far, fault.remedy, fault.details)
    return Unavailable(f"{fault}{so_far}; the same lines with the same id submit nothing twice")
