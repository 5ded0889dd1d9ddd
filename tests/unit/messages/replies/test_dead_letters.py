"""What answers about dead letters tell apart."""

import msgspec

from tests.unit.messages.dead_letter_examples import FULL
from wms.messages import replies


def test_a_sender_that_was_not_verified_is_not_one_without_a_name() -> None:
    nameless = replies.LetterSender(kind="user", owner="", owner_group="", vo="")
    for sender in (None, nameless):
        said = msgspec.structs.replace(FULL["dead-letter"], sender=sender)
        read = msgspec.json.decode(msgspec.json.encode(said), type=replies.DeadLetterDetail)
        assert read.sender == sender
