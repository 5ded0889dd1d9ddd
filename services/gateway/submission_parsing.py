"""Makes the messages of a submission from its document: of small plain ones at once, of all others in a parsing process."""

from collections.abc import Sequence
from typing import Final

import msgspec

from wms.client.submission import Messages, messages
from wms.decoding import UNDECODABLE
from wms.errors import Rejected
from wms.jobdesc.description import JobDescription
from wms.jobdesc.expansion import Expansion, at_a_service
from wms.jobdesc.from_json import read_json
from wms.jobdesc.small import is_small

JSON_LIMIT: Final = 8 * 1024 * 1024
"""The most bytes of a JSON submission; larger ones are refused. Streams of lines have no such limit."""
LINE_LIMIT: Final = 900_000
"""The most bytes of a line; longer ones are refused, since a line must fit into one Kafka message."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(JobDescription)


class SubmissionTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How the jobs of a document are to be submitted."""

    name: str
    """The id of the submission, from which those of its messages are derived."""
    client: str
    strict: bool
    hold: bool
    before: int = 0
    """The number of earlier lines, for error messages."""


_terms = msgspec.json.Decoder(SubmissionTerms)


def messages_of_small(raw: bytes, terms: SubmissionTerms) -> Messages | None:
    """Return the messages of a document that is one small description; None for any other, whether valid or not."""
    return _messages(read_json(raw), terms) if is_small(raw) else None


def parse_document(raw: bytes, terms: bytes) -> list[bytes]:
    """Return the messages, as JSON, of a document with one job or a list of jobs. `terms` are SubmissionTerms as JSON.

    Raise Rejected if the document is malformed, too large or expands too far.
    """
    return _encoded(_messages(read_json(raw, JSON_LIMIT, at_a_service()), _terms.decode(terms)))


def parse_lines(raw: bytes, terms: bytes) -> list[bytes]:
    """Return the messages, as JSON, of lines with one description each. `terms` are SubmissionTerms as JSON.

    Raise Rejected, with the number and the faults of the line, if one is malformed or expands too far.
    """
    said = _terms.decode(terms)
    expansion = at_a_service()
    jobs: list[JobDescription] = []
    for number, line in enumerate(raw.split(b"\n"), said.before + 1):
        jobs += _line(line, number, expansion)
    return _encoded(_messages(jobs, said))


def _messages(jobs: Sequence[JobDescription], terms: SubmissionTerms) -> Messages:
    return messages(jobs, terms.name, terms.client, strict=terms.strict, hold=terms.hold)


def _encoded(whole: Messages) -> list[bytes]:
    return [_encoder.encode(each) for each in (*whole.values, *whole.submits)]


def _line(line: bytes, number: int, expansion: Expansion) -> Sequence[JobDescription]:
    try:
        return (_decoder.decode(line),)
    except UNDECODABLE:
        # `read_json` is slower, but reports each fault with its place.
        try:
            return read_json(line, LINE_LIMIT, expansion)
        except Rejected as fault:
            raise Rejected(
                fault.code, f"line {number}: {fault.message}", fault.remedy, fault.details
            ) from None
