"""Messages of owners, with offsets of their own."""

import itertools

from wms.auth.principal import Principal
from wms.bus.delivery import Decoded, Delivery
from wms.bus.reader import Message

_offsets = itertools.count()


def message(owner: str, *, partition: int = 0, size: int = 100) -> Decoded[str]:
    record = Message(partition, next(_offsets), None, b"x" * size, "")
    who = Principal(
        kind="user", owner=owner, group="g", vo="v", rights=frozenset(), pilot_id=None, site=None, ce=None,
        token_id="t", expires_at=4e9,
    )  # fmt: skip
    return Decoded(record, Delivery(who, "m"))
