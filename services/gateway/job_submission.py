"""`POST /jobs`: submits one job, a list of jobs, or a stream of one job a line. A stream is never in memory as a whole."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import request_parsing, submission_parsing
from services.gateway.operation import CREATED, JSON_TYPE, Operation
from services.gateway.service_requests import Desk, json_response
from services.gateway.submission_parsing import JSON_LIMIT, LINE_LIMIT, SubmissionTerms
from wms.client.channel import Channel
from wms.client.submission import Messages, Submission
from wms.client.submitting import send
from wms.errors import Rejected, Unavailable, WmsError
from wms.jobdesc.description import JobDescription
from wms.messages.commands import AddChunks, Submit

LINES: Final = 1_000
"""The most lines of a stream that are submitted together, as one part."""
PART_BYTES: Final = 2_000_000
AT_ONCE: Final = 4
"""The most parts of a stream that wait for replies at a time; only then are further lines read."""
TOLD_LIMIT: Final = 100
"""The most warnings in the answer to a stream, and the most jobs in it that could run nowhere. Further ones are left out."""
UNCOUNTED_BYTES: Final = 65_536
"""The most bytes of a document that is not counted as taking memory."""
LINES_TYPE: Final = "application/x-ndjson"

Parse: TypeAlias = Callable[..., Awaitable[list[bytes]]]
"""Calls a function in a parsing process of the owner's turn."""

_decoder = msgspec.json.Decoder(AddChunks | Submit)


class SubmissionParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a submission. They stand in the query string of the request."""

    strict: bool = False
    """Whether to refuse all jobs if one of them could run nowhere now. In a stream of lines this applies to each part of up to 1,000 lines."""
    hold: bool = False
    """Whether the jobs start in the state Held, and wait until they are released."""


SUBMIT: Final = Operation(
    method="POST",
    path="/jobs",
    summary="Submit a job, a list of jobs, or a stream with one a line",
    parameters=SubmissionParameters,
    body=JobDescription | tuple[JobDescription, ...],
    body_types=(JSON_TYPE, LINES_TYPE),
    answer=Submission,
    status=CREATED,
)


class JobSubmission:
    """The endpoint that submits jobs."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Return the response with the ids of the jobs, once all are accepted and stored durably.

        Raise Rejected if the submission is malformed or refused, and Unavailable if no reply comes in time.
        """
        settings = self._desk.settings
        credential = self._desk.admit(request)
        terms = request_parsing.parameters(request, SubmissionParameters)
        name = request_parsing.request_id(request)
        kind = request_parsing.require_type(request, *SUBMIT.body_types)
        channel = self._desk.services.channel(credential)
        parse = partial(self._desk.parsers.parse, credential.owner)
        stream = SubmissionStream(channel, settings.answer_seconds, parse, name, terms)
        if kind == LINES_TYPE:
            lines = request_parsing.pieces(request, settings.read_seconds)
            return json_response(await stream.take(parts_of(lines)), CREATED)
        # While a document waits, others of its owner do. All of them together are in memory.
        with self._desk.documents.held(credential.owner, _held_bytes(request)):
            raw = await request_parsing.whole(request, JSON_LIMIT, settings.read_seconds)
            return json_response(await stream.submit(raw), CREATED)


class SubmissionStream:
    """One submission, sent to the job manager in parts with ids of their own. So a client may repeat the whole without submitting a job twice."""

    def __init__(
        self, channel: Channel, seconds: float, parse: Parse, name: str, terms: SubmissionParameters
    ) -> None:
        """Make a submission with the id `name`. `seconds` limits the wait for each reply."""
        self._channel = channel
        self._seconds = seconds
        self._parse = parse
        self._name = name
        self._terms = terms

    async def submit(self, raw: bytes) -> Submission:
        """Submit the jobs of the JSON document `raw`. Raise Rejected if it is malformed or refused, and Unavailable if no reply comes in time."""
        terms = self._terms_of(self._name)
        whole = submission_parsing.messages_of_small(raw, terms)
        if whole is None:
            whole = await self._parsed(submission_parsing.parse_document, raw, terms)
        return await self._send(whole, self._name)

    def _terms_of(self, name: str, before: int = 0) -> SubmissionTerms:
        said = self._terms
        return SubmissionTerms(
            name=name, client=self._channel.client, strict=said.strict, hold=said.hold, before=before
        )

    async def _parsed(
        self, function: Callable[[bytes, bytes], list[bytes]], raw: bytes, terms: SubmissionTerms
    ) -> Messages:
        """Return the messages that `function` makes of a document in a parsing process."""
        whole = Messages([], [])
        for piece in await self._parse(function, raw, msgspec.json.encode(terms)):
            match _decoder.decode(piece):
                case AddChunks() as values:
                    whole.values.append(values)
                case submit:
                    whole.submits.append(submit)
            await asyncio.sleep(0)
        return whole

    async def _send(self, whole: Messages, name: str) -> Submission:
        return await send(self._channel, self._seconds, whole, name, strict=self._terms.strict)

    async def take(self, parts: AsyncIterator["LineBatch"]) -> Submission:
        """Submit the parts as they come, at most `AT_ONCE` at a time, and return the result for all.

        If one fails, raise its error, with the number of jobs that were submitted nevertheless.
        """
        under_way = deque[asyncio.Task[Submission]]()
        taken: list[Submission] = []
        try:
            await self._take(parts, under_way, taken)
        except WmsError as fault:
            # Other parts may have been accepted, and the error must say how many jobs were.
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
        parts: AsyncIterator["LineBatch"],
        under_way: deque[asyncio.Task[Submission]],
        taken: list[Submission],
    ) -> None:
        async for part in parts:
            name = f"{self._name}/lines-{part.number}"
            terms = self._terms_of(name, part.before)
            whole = await self._parsed(submission_parsing.parse_lines, b"\n".join(part.lines), terms)
            under_way.append(asyncio.create_task(self._send(whole, name), name="submit part"))
            if len(under_way) >= AT_ONCE:
                taken.append(await under_way.popleft())
        while under_way:
            taken.append(await under_way.popleft())


class LineBatch(msgspec.Struct, frozen=True):
    """A part of a stream: lines that are submitted together."""

    number: int
    """The number of this part in the stream, from 0 on."""
    before: int
    """The number of lines in all earlier parts, blank lines not counted."""
    lines: list[bytes]


def _held_bytes(request: Request) -> int:
    """Return how many bytes of memory a request's document may take; 0 if it is too small to matter."""
    size = request_parsing.body_size(request, JSON_LIMIT)
    return size if size > UNCOUNTED_BYTES else 0


async def parts_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[LineBatch]:
    """Yield the lines of a stream in parts of at most `LINES` lines and about 2 MB. Raise Rejected if a line exceeds `LINE_LIMIT`."""
    part = LineBatch(0, 0, [])
    size = 0
    async for line in lines_of(pieces):
        part.lines.append(line)
        size += len(line)
        if len(part.lines) >= LINES or size >= PART_BYTES:
            yield part
            part, size = LineBatch(part.number + 1, part.before + len(part.lines), []), 0
    if part.lines:
        yield part


async def lines_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, without blank ones. Raise Rejected if a line exceeds `LINE_LIMIT`."""
    rest = bytearray()
    async for piece in pieces:
        rest += piece
        if b"\n" in piece:
            *whole, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in whole:
                if line and not line.isspace():
                    yield line
        if len(rest) > LINE_LIMIT:
            raise Rejected(
                "LINE_TOO_LARGE", f"a line is over {LINE_LIMIT:,} bytes", "put files into `input_sandbox`"
            )
    if rest and not rest.isspace():
        yield bytes(rest)


def merged(name: str, taken: Sequence[Submission]) -> Submission:
    """Return one submission with the id `name` that combines its parts.

    Consecutive ranges of job ids are joined, and warnings are cut to `TOLD_LIMIT`.
    """
    return Submission(
        id=name,
        ids=_ranges([each for part in taken for each in part.ids]),
        repeated=all(part.repeated for part in taken),
        warnings=tuple(dict.fromkeys(each for part in taken for each in part.warnings))[:TOLD_LIMIT],
        foreseen=tuple(each for part in taken for each in part.foreseen)[:TOLD_LIMIT],
    )


def _ranges(ids: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of job ids with consecutive ones joined, in the order of the job descriptions."""
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
