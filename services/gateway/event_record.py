"""A record of the topic of job events, as the gateway keeps it in memory."""

import contextlib

import msgspec

from wms.bus.kafka import Message
from wms.errors import Rejected
from wms.messages.events import Fact
from wms.messages.wire import Codec

_CODEC: Codec[Fact] = Codec(Fact, rules=False)


class EventRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of the topic of job events: its position, its size in bytes, and its fact.

    A fact is the decoded message, such as a state change; None if it cannot be decoded. There are many, of which none is part of a cycle: the
    garbage collector does not look at them (`gc`).
    """

    partition: int
    offset: int
    size: int
    fact: Fact | None


def parsed(record: Message) -> EventRecord:
    """Return a Kafka record with its decoded message as `fact`, which is None if the payload is malformed."""
    fact: Fact | None = None
    with contextlib.suppress(Rejected):
        fact = _CODEC.decode(record.payload)
    return EventRecord(record.partition, record.offset, record.size, fact)
