"""Messages that block their Kafka partitions, read from the broker and shown with the senders that they claim to have."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from wms.cli.quantities import span
from wms.errors import Rejected, shown
from wms.messages.wire import type_of
from wms.runtime.service_health import PartitionLine

if TYPE_CHECKING:
    from wms.bus.blocked_messages import BlockedMessage
    from wms.bus.kafka import Kafka
    from wms.db.database import Database

BLOCKED = ("CONSUMER", "PARTITION", "OFFSET>", "FOR>", "TYPE", "SENDER", "SIZE>")


class BlockedMessageLine(msgspec.Struct, frozen=True, kw_only=True):
    """The message that blocks a partition, for a table or JSON."""

    consumer: str
    topic: str
    partition: int
    offset: int
    age: float
    """For how many seconds the message has blocked its consumer."""
    type: str
    sender: str
    """The owner that the message's token names. The token was not verified."""
    bytes: int


def line_of(each: "BlockedMessage") -> BlockedMessageLine:
    """Return a message that blocks its partition as a line for a table or JSON."""
    return BlockedMessageLine(
        **msgspec.structs.asdict(each.position),
        age=each.age,
        type=type_of(each.message.payload),
        sender=claimed_sender(each.message.token),
        bytes=len(each.message.payload),
    )


def unhandled_row(each: BlockedMessageLine) -> tuple[object, ...]:
    """Return the table row that shows a message that blocks its partition."""
    place = f"{each.topic}/{each.partition}"
    return each.consumer, place, each.offset, span(each.age), each.type, each.sender, f"{each.bytes:,}"


def in_words(each: BlockedMessageLine) -> str:
    """Return a message that blocks its partition as text. The text begins with the arguments by which `wms dead-letters skip` skips it."""
    sender = "" if each.sender == "-" else f" of {each.sender}"
    place = f"{each.consumer} {each.topic}/{each.partition} {each.offset}"
    return f"{place}: {each.type}{sender}, {each.bytes:,} bytes, for {span(each.age)}"


def claimed_sender(token: str) -> str:
    """Return the owner that a token names; the token is not verified. A dash if it names none."""
    from wms.client.credential import decode

    try:
        return shown(decode(token.encode("ascii", "replace"), "the message").owner, 60)
    except Rejected:
        return "-"


async def unhandled(
    db: "Database", kafka: "Kafka", silent: Sequence[PartitionLine]
) -> list[BlockedMessageLine]:
    """Return the next message of each partition in `silent`, the partitions without progress. A partition without a next message is left out."""
    from wms.bus.blocked_messages import next_messages

    wanted = {(each.consumer, each.topic, each.partition) for each in silent}
    return [line_of(each) for each in await next_messages(db, kafka, wanted)]
