"""One record of the topic of events, as the gateway keeps it."""

import contextlib

import msgspec

from wms.bus.kafka import Message
from wms.errors import Rejected
from wms.messages.events import Fact
from wms.messages.wire import Codec

_CODEC: Codec[Fact] = Codec(Fact, rules=False)


class EventRecord(msgspec.Struct, frozen=True):
    """One record of the topic; `fact` is None if it cannot be read."""

    partition: int
    offset: int
    size: int
    fact: Fact | None


def parsed(record: Message) -> EventRecord:
    """Return a record with its fact."""
    fact: Fact | None = None
    with contextlib.suppress(Rejected):
        fact = _CODEC.decode(record.payload)
    return EventRecord(record.partition, record.offset, record.size, fact)
