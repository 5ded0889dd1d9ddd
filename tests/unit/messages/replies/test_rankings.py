"""Rankings as records keep them and tools read them."""

import msgspec

from tests.unit.messages.ranking_examples import RANKED, REJECTED
from wms.messages.replies import RankedElement

_KEPT = msgspec.json.Decoder(tuple[RankedElement, ...])


def test_what_is_kept_is_read_again() -> None:
    assert _KEPT.decode(msgspec.json.encode((RANKED, REJECTED))) == (RANKED, REJECTED)


def test_a_rejected_element_takes_little_room() -> None:
    assert len(msgspec.json.encode(REJECTED)) < 100
