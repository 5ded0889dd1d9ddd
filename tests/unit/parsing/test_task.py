"""Messages between a service and its parsing processes."""

import msgspec
import pytest

from wms.parsing.task import LENGTH, Parsed, ParserRefusal, ParserTask, frame


@pytest.mark.parametrize(
    "message",
    [
        ParserTask("module:name", [b"", b"\0" * 70_000], 1.5),
        Parsed([b"a"]),
        ParserRefusal("CODE", "message", "remedy", ("a", "b")),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_frame_says_its_length(message: msgspec.Struct) -> None:
    raw = frame(message)
    assert LENGTH.unpack(raw[: LENGTH.size]) == (len(raw) - LENGTH.size,)
    assert msgspec.msgpack.decode(raw[LENGTH.size :], type=type(message)) == message
