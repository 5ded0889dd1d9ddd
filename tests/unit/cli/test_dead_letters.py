"""What operators write after `wms dead-letters`, and what is read of messages that may be anything."""

import pytest

from wms.cli.dead_letters import dead_letters, numbers
from wms.errors import Rejected


def test_letters_are_named_one_by_one_or_as_a_range() -> None:
    assert numbers(["3", "4", "10-12"]) == [3, 4, 10, 11, 12]


@pytest.mark.parametrize("words", [[], ["all"], ["-3"], ["3-"], ["0x3"], ["1-99999999"], ["9" * 50], ["1 2"]])
def test_what_names_no_letter_is_refused(words: list[str]) -> None:
    with pytest.raises(Rejected) as refused:
        numbers(words)
    assert refused.value.code == "BAD_OPTION"


@pytest.mark.parametrize("words", [(), ("c", "t/0"), ("c", "t/x", "3"), ("c", "t/0", "last")])
def test_a_message_to_skip_is_named_exactly(words: tuple[str, ...]) -> None:
    with pytest.raises(Rejected, match="CONSUMER TOPIC/PARTITION OFFSET"):
        dead_letters("skip", *words, reason="slow")


def test_to_skip_and_to_drop_need_a_reason() -> None:
    with pytest.raises(Rejected, match="needs a reason"):
        dead_letters("skip", "c", "t/0", "3")
    with pytest.raises(Rejected, match="needs a reason"):
        dead_letters("drop", "3")
