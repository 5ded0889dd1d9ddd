"""What is read of messages that nobody could handle."""

import pytest

from wms.cli.blocked_messages import claimed_sender
from wms.messages.wire import type_of


@pytest.mark.parametrize(
    ("payload", "type_"),
    [
        (b'{"type":"submit","jobs":[]}', "submit"),
        (b'{ "a": 1, "type" : "list-jobs"}', "list-jobs"),
        (b"\xff\xfe\x00", "-"),
        (b"", "-"),
        (b'{"type":"\x1b[31m"}', "-"),
    ],
)
def test_the_type_is_read_without_decoding(payload: bytes, type_: str) -> None:
    assert type_of(payload) == type_


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é.é.é"])
def test_a_token_that_is_none_has_no_sender(token: str) -> None:
    assert claimed_sender(token) == "-"
