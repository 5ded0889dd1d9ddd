"""Messages that hold up a consumer, and an operator's order to skip one.

The order does not need a live consumer. One transaction puts the message into the dead letters and moves the offset behind it, with the
compare-and-set that consumers use. A consumer that still handles the message then fails to commit, and continues behind it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

import asyncpg
import msgspec

from wms.auth.principal import Principal
from wms.bus.kafka import Kafka, Message
from wms.db import dead_letter, offset, operator_order
from wms.db.database import Database, Transaction
from wms.db.dead_letter import DeadLetter
from wms.db.offset import ConsumedTopic, PartitionLost
from wms.errors import Rejected, Unavailable

READ_SECONDS = 5.0
LOOK_WITHIN = 1.0
LOOK_SECONDS = 0.2
PATIENCE_SECONDS = 3.0
"""A message blocks its partition if it has been the next one to handle for this many seconds."""


class MessagePosition(msgspec.Struct, frozen=True, kw_only=True):
    """The position of a message that a consumer must handle next: consumer, topic, partition and offset."""

    consumer: str
    topic: str
    partition: int
    offset: int

    @property
    def text(self) -> str:
        """The position of the message as text, in the form that `wms dead-letters skip` takes."""
        return f"{self.consumer} {self.topic}/{self.partition} {self.offset}"


class BlockedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a consumer must handle next, and for how long it has been the next one."""

    position: MessagePosition
    message: Message
    age: float
    """Seconds since the consumer's offset last moved to this message."""


class SkipOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's order to skip a message: the operator, the reason, and whether to use force."""

    operator: str
    reason: str
    force: bool = False
    """Whether to end the database sessions that are handling the message. Otherwise the order waits for them, 3 s at most."""


async def first_messages(
    kafka: Kafka, topic: str, offsets: Mapping[int, int], within: float = READ_SECONDS
) -> dict[int, Message]:
    """Return, for each partition, the first message at or after its offset in `offsets`.

    Partitions where none is found in `within` seconds are absent.
    """
    found: dict[int, Message] = {}
    reader = await kafka.reader(topic)
    try:
        reader.assign(dict(offsets))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while found.keys() != offsets.keys():
                    for each in await reader.poll(0.2, 100):
                        if each.offset >= offsets[each.partition]:
                            found.setdefault(each.partition, each)
    finally:
        await reader.close()
    return found


async def blocking(db: Database, kafka: Kafka, patience: float = PATIENCE_SECONDS) -> list[BlockedMessage]:
    """Return the messages of all consumers that have been next and unhandled for `patience` seconds."""
    before = await _positions(db, kafka)
    started = asyncio.get_running_loop().time()
    waiting = await _messages_at([each for each, age in before.items() if age > patience], kafka)
    # A message that has just come gets as long.
    if waiting:
        await asyncio.sleep(max(0.0, started + patience - asyncio.get_running_loop().time()))
    return await _still(waiting, db, kafka)


async def next_messages(
    db: Database, kafka: Kafka, partitions: Collection[tuple[str, str, int]]
) -> list[BlockedMessage]:
    """Return the message that is next to be handled in each partition, named by consumer, topic and number. Partitions without one are absent."""
    positions = await _positions(db, kafka)
    at = [each for each in positions if (each.consumer, each.topic, each.partition) in partitions]
    return await _still(await _messages_at(at, kafka), db, kafka)


async def _messages_at(places: Sequence[MessagePosition], kafka: Kafka) -> dict[MessagePosition, Message]:
    by_feed: dict[tuple[str, str], dict[int, MessagePosition]] = {}
    for each in places:
        by_feed.setdefault((each.consumer, each.topic), {})[each.partition] = each
    found: dict[MessagePosition, Message] = {}
    for (_, topic), by_partition in by_feed.items():
        offsets = {partition: each.offset for partition, each in by_partition.items()}
        messages = await first_messages(kafka, topic, offsets, LOOK_WITHIN)
        found |= {by_partition[partition]: message for partition, message in messages.items()}
    return found


async def _still(
    waiting: Mapping[MessagePosition, Message], db: Database, kafka: Kafka
) -> list[BlockedMessage]:
    """Return those of these messages that are still the next ones to be handled in their partitions."""
    now = await _positions(db, kafka)
    return [
        BlockedMessage(position=each, message=message, age=now[each])
        for each, message in waiting.items()
        if each in now
    ]


async def _positions(db: Database, kafka: Kafka) -> dict[MessagePosition, float]:
    async with db.transaction() as tx:
        rows = await offset.of_cluster(tx, kafka.cluster_id)
    return {
        MessagePosition(
            consumer=row["consumer"],
            topic=row["topic"],
            partition=row["partition"],
            offset=row["next_offset"],
        ): row["age"]
        for row in rows
    }


async def set_aside(
    db: Database,
    kafka: Kafka,
    blocked: MessagePosition,
    order: SkipOrder,
    verify: Callable[[str], Principal | None],
    *,
    also: Callable[[Transaction], Awaitable[None]] | None = None,
) -> Message:
    """Make the message at the position `blocked` a dead letter, move the consumer's offset past it, log the order, and return the message.

    `verify` returns the sender that a token proves, or None if the token is invalid. A message without a sender is never replayed. `also` is called
    with the transaction, for further work in it. Raise Rejected if the message is not the next one of its partition, or does not exist. Raise
    Unavailable if a consumer is handling the message.
    """
    feed = ConsumedTopic(kafka.cluster_id, blocked.consumer, blocked.topic)
    async with db.transaction() as tx:
        check_next(blocked, await offset.find(tx, feed, blocked.partition))
    found = await first_messages(kafka, blocked.topic, {blocked.partition: blocked.offset})
    message = found.get(blocked.partition)
    if message is None:
        raise Rejected("NO_MESSAGE", f"there is no message at {blocked.text}", "nothing blocks it")
    letter = DeadLetter(
        partition=blocked.partition,
        offset=message.offset,
        key=message.key,
        payload=message.payload,
        principal=_as_json(verify(message.token)),
        error=f"set aside by {order.operator}: {order.reason}",
    )
    try:
        async with db.transaction() as tx, _unlocked(db, tx, force=order.force):
            await offset.advance(tx, feed, {blocked.partition: (blocked.offset, message.offset + 1)})
            await dead_letter.bury(tx, feed, letter)
            await operator_order.record(tx, order.operator, "skip", [blocked.text], order.reason)
            if also is not None:
                await also(tx)
    except PartitionLost:
        raise Rejected(
            "NOT_NEXT", f"{blocked.text} was handled in this moment", "`wms status` tells what blocks"
        ) from None
    except asyncpg.LockNotAvailableError:
        raise Unavailable(f"{blocked.text} is being handled just now: wait, or end that by --force") from None
    return message


def check_next(blocked: MessagePosition, following: int | None) -> None:
    """Raise Rejected unless `following` is the offset of the message. `following` is the partition's next offset, or None if it was never read."""
    if following is None:
        raise Rejected(
            "NO_SUCH_PARTITION",
            f"{blocked.consumer} reads no partition {blocked.partition} of {blocked.topic}",
            "`wms dead-letters blocked` names what blocks",
        )
    if following != blocked.offset:
        raise Rejected(
            "NOT_NEXT",
            f"the next message of {blocked.topic}/{blocked.partition} is that at {following}, not {blocked.offset}",
            "`wms dead-letters blocked` names what blocks",
        )


def _as_json(principal: Principal | None) -> str | None:
    return None if principal is None else msgspec.json.encode(principal).decode()


@asynccontextmanager
async def _unlocked(db: Database, tx: Transaction, *, force: bool) -> AsyncIterator[None]:
    """In this context, statements of the transaction wait briefly for locks. With `force`, sessions that hold the locks are ended instead."""
    if not force:
        await offset.wait_briefly(tx)
        yield
        return
    backend = await offset.backend(tx)
    ending = asyncio.create_task(_end_blockers(db, backend))
    try:
        yield
    finally:
        ending.cancel()
        await asyncio.wait([ending])


async def _end_blockers(db: Database, backend: int) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        async with db.transaction() as tx:
            await offset.end_blockers(tx, backend)
