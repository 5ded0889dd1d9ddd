"""Places of readers in the events."""

import pytest

from services.gateway.event_cursor import EventCursor, cursor_of, mark_of

AT = EventCursor(mark_of("a cluster"), (7, 0, 12, 3))


def test_a_place_is_read_as_it_was_written() -> None:
    assert cursor_of(str(AT)) == AT


def test_a_record_moves_its_partition_alone() -> None:
    assert AT.past(2, 12).offsets == (7, 0, 13, 3)


def test_going_back_ends_at_the_beginning() -> None:
    assert AT.back(5).offsets == (2, 0, 7, 0)


@pytest.mark.parametrize(
    "text", ["", "1-2-3-4", f"{AT}-5", f"{AT}x", "00000000-1-2-3", "00000000-1-2-3--4", "ABCDEF00-1-2-3-4"]
)
def test_anything_else_is_no_place(text: str) -> None:
    assert cursor_of(text) is None
