"""A mark is read as it was written."""

from tests.unit.messages.examples import MARK
from wms.messages.database_marks import DatabaseMark
from wms.messages.wire import Codec, encode


def test_a_mark_is_read_as_it_was_written() -> None:
    codec: Codec[DatabaseMark] = Codec(DatabaseMark)
    assert codec.decode(encode(MARK)) == MARK
