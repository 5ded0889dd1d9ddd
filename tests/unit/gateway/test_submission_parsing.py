"""What the gateway parses at once, and what in a process apart; both make the same messages."""

import msgspec
import pytest

from services.gateway.submission_parsing import (
    SubmissionTerms,
    messages_of_small,
    parse_document,
    parse_lines,
)
from wms.client.submission import Messages
from wms.errors import Rejected
from wms.jobdesc.small import SMALL_BYTES
from wms.messages.commands import AddChunks, Submit

TERMS = SubmissionTerms(name="s", client="c", strict=True, hold=False)
_decoder = msgspec.json.Decoder(AddChunks | Submit)


def apart(document: bytes) -> Messages:
    found = [_decoder.decode(each) for each in parse_document(document, msgspec.json.encode(TERMS))]
    return Messages(
        [each for each in found if isinstance(each, AddChunks)],
        [each for each in found if isinstance(each, Submit)],
    )


def test_a_small_plain_description_is_parsed_at_once_to_the_same_messages() -> None:
    document = b'{"executable":"x","array":2,"parameters":{"a":["1","2"]},"requirements":"other.a > 1"}'
    at_once = messages_of_small(document, TERMS)
    assert at_once == apart(document)
    assert at_once is not None
    assert (at_once.submits[0].client, at_once.submits[0].strict) == ("c", True)


@pytest.mark.parametrize(
    "document",
    [
        b'{"executable":"x","array":2,"parameters":{"a":{"step":1}}}',
        b'[{"executable":"x"}]',
        b'{"defaults":{"executable":"x"},"jobs":[{}]}',
        b'{"executable":"x","requirements":"' + b"a>1&&" * 200 + b'a>1"}',
        b'{"executable":"x","arguments":["' + b"y" * SMALL_BYTES + b'"]}',
        b'{"executable":"x","unknown":1}',
        b"{]",
    ],
)
def test_anything_else_is_left_to_a_process(document: bytes) -> None:
    assert messages_of_small(document, TERMS) is None


def test_long_lists_become_messages_of_their_own() -> None:
    values = b",".join(b'"%0100d"' % n for n in range(5_000))
    found = apart(b'{"executable":"x","parameters":{"a":[' + values + b"]}}")
    assert sum(len(each.chunks) for each in found.values) == 5


def test_a_key_given_twice_is_refused_at_once() -> None:
    with pytest.raises(Rejected, match="twice"):
        messages_of_small(b'{"executable":"x","name":"a","name":"b"}', TERMS)


def test_a_line_tells_its_number_behind_those_before() -> None:
    terms = msgspec.structs.replace(TERMS, before=7)
    with pytest.raises(Rejected, match="line 9: "):
        parse_lines(b'{"executable":"x"}\n{"executable":1}', msgspec.json.encode(terms))


def test_all_lines_of_a_part_share_what_they_may_expand_to() -> None:
    line = b'{"executable":"x","parameters":{"a":{"count":6000}}}'
    parse_lines(line, msgspec.json.encode(TERMS))
    with pytest.raises(Rejected, match="EXPANDS_TOO_FAR"):
        parse_lines(line + b"\n" + line, msgspec.json.encode(TERMS))
