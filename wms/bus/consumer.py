"""A consumer: batches of one topic, each handled in one transaction that also moves the offset.

Partitions are shared out over the live instances by their order in Postgres; two instances may believe in the same one
for a moment, and the compare-and-set on the offset lets only one of them commit. So each message takes effect once,
whatever dies when. A batch that cannot be handled is halved until the message that spoils it is alone: that one goes to
the dead letters, and the rest goes on.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from wms import faultpoint
from wms.auth.principal import Principal
from wms.auth.token import Verifier
from wms.bus.kafka import Kafka, Message, Reader
from wms.bus.topics import Topic
from wms.db import dead_letter, offset
from wms.db.database import GONE, RETRIED, Database, Transaction
from wms.db.dead_letter import DeadLetter
from wms.db.instance import DEAD_AFTER_SECONDS
from wms.db.offset import Feed, PartitionLost
from wms.errors import Rejected, Unavailable
from wms.ids import InstanceId
from wms.messages.wire import Codec

log = structlog.get_logger()

M = TypeVar("M")

GIVE_UP_AFTER_SECONDS = 60.0
"""A consumer that could reach neither broker nor database for so long ends its process, to begin afresh."""

STUCK_AFTER_SECONDS = 20.0
"""A reader that neither brought anything nor heard from the broker for so long is replaced: clients have hung before."""

POLL_SECONDS = 0.2
RETRY_SECONDS = 0.5
SHARE_SECONDS = 0.1
"""Between looks for partitions to handle, while there are none."""
MARGIN_SECONDS = 1.0
"""An instance gives its partitions up this much before the others take it for dead."""


class Delivery(msgspec.Struct, Generic[M], frozen=True):
    """One message and who sent it."""

    principal: Principal | None
    message: M


Handler = Callable[[Transaction, list[Delivery[M]]], Awaitable[None]]
OnRefused = Callable[[Transaction, M, Rejected, str], Awaitable[None]]
"""Told of a message whose token was not accepted, and whose it claimed to be: to say so, never to act on it."""


class Membership:
    """Who shares the work with this instance; brought up to date by every heartbeat."""

    def __init__(self, instance_id: InstanceId) -> None:
        self.instance_id = instance_id
        self._sharers: dict[str, list[InstanceId]] = {}
        self._good_until = 0.0

    def update(self, sharers: dict[str, list[InstanceId]]) -> None:
        """Take what the last heartbeat brought."""
        self._sharers = sharers
        self._good_until = time.monotonic() + DEAD_AFTER_SECONDS - MARGIN_SECONDS

    def place(self, consumer: str) -> tuple[int, int]:
        """Return this instance's place, from 0, among how many that share a consumer's work; (0, 1) if it is none of them."""
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return 0, 1
        return sharers.index(self.instance_id), len(sharers)

    def share(self, consumer: str, count: int) -> tuple[int, ...]:
        """Return which of `count` partitions are this instance's: none when its last heartbeat is too long ago."""
        if time.monotonic() > self._good_until:
            return ()
        sharers = self._sharers.get(consumer, [])
        if self.instance_id not in sharers:
            return ()
        place = sharers.index(self.instance_id)
        return tuple(range(place, count, len(sharers)))


class _Decoded(msgspec.Struct, Generic[M], frozen=True):
    record: Message
    delivery: Delivery[M] | None
    fault: Rejected | None = None


class Consumer(Generic[M]):
    """Reads one topic for one purpose: `name` is that purpose, and what its offsets are kept under.

    Its partitions are handled in `lanes`, each of which has one transaction at a time: while one waits for the database
    another works.
    """

    def __init__(
        self,
        name: str,
        topic: Topic,
        codec: Codec[M],
        handle: Handler[M],
        *,
        db: Database,
        kafka: Kafka,
        membership: Membership,
        verifier: Verifier | None,
        now: Callable[[], float],
        on_refused: OnRefused[M] | None = None,
        batch: int = 512,
        lanes: int = 1,
    ) -> None:
        self.name = name
        self._lanes = lanes
        self.topic = topic
        self._codec = codec
        self._handle = handle
        self._db = db
        self._kafka = kafka
        self._membership = membership
        self._verifier = verifier
        self._now = now
        self._on_refused = on_refused
        self._batch = batch
        self._feed = Feed(kafka.cluster_id, name, topic.name)
        self._offsets: dict[int, int] = {}
        self._readers: dict[int, Reader] = {}
        """By partition: each lane has one of its own, lest it wait for what another has not yet taken."""
        self._failing_since: float | None = None
        self.handled = 0

    @property
    def lag(self) -> int:
        """Messages of this instance's partitions that are still to be handled, as of the last fetch."""
        ends = {part: reader.high_water(part) for part, reader in self._readers.items()}
        return sum(max(0, end - self._offsets[part]) for part, end in ends.items())

    async def run(self) -> None:
        """Handle batches until cancelled; a batch in hand is finished first. Fails when nothing works for too long."""
        while True:
            pause = SHARE_SECONDS
            try:
                await self._read()
            except (*GONE, *RETRIED, Unavailable) as error:
                pause = RETRY_SECONDS
                self._failing_since = self._failing_since or time.monotonic()
                log.warning("consumer waits", consumer=self.name, error=repr(error))
                if time.monotonic() - self._failing_since > GIVE_UP_AFTER_SECONDS:
                    raise
            await asyncio.sleep(pause)

    async def _read(self) -> None:
        """Handle batches until the shares change or something fails: nothing is guessed after that."""
        wanted = self._share()
        if not wanted:
            self._failing_since = None
            return
        try:
            async with self._db.transaction() as tx:
                self._offsets = await offset.begin(tx, self._feed, wanted)
            log.info("partitions assigned", consumer=self.name, offsets=self._offsets)
            lanes = [part for lane in range(self._lanes) if (part := wanted[lane :: self._lanes])]
            await _together([self._follow(wanted, part) for part in lanes])
        except PartitionLost as lost:
            log.warning("partition lost", consumer=self.name, error=str(lost))
        finally:
            self._offsets = {}

    def _share(self) -> tuple[int, ...]:
        return self._membership.share(self.name, self.topic.partitions)

    async def _follow(self, wanted: tuple[int, ...], part: tuple[int, ...]) -> None:
        """Handle the batches of some partitions, one after another, for as long as the shares stay as they are."""
        reader = await self._kafka.reader(self.topic.name)
        try:
            reader.assign({each: self._offsets[each] for each in part})
            self._readers |= dict.fromkeys(part, reader)
            heard = _Heard()
            while self._share() == wanted:
                records = await reader.poll(POLL_SECONDS, self._batch)
                if records:
                    self._hurry()
                    await _to_its_end(self._take(records))
                    heard.something()
                elif not heard.answered(await reader.unread(), reader.answered_at()):
                    continue
                self._failing_since = None
        finally:
            for each in part:
                self._readers.pop(each, None)
            await reader.close()

    def _hurry(self) -> None:
        # Where one message came the next may come to any partition.
        for each in set(self._readers.values()):
            each.hurry()

    async def _take(self, records: Sequence[Message]) -> None:
        started = time.perf_counter()
        await self._rewind(records)
        await self._handle_or_halve([self._decode(record) for record in records])
        self.handled += len(records)
        log.debug(
            "batch",
            consumer=self.name,
            messages=len(records),
            ms=round((time.perf_counter() - started) * 1000, 1),
        )

    async def _rewind(self, records: Sequence[Message]) -> None:
        """Follow a log that begins again below the offset, as one does whose topic was deleted and made anew."""
        for record in records:
            behind = self._offsets[record.partition]
            if record.offset < behind:
                if await self._kafka.read_cluster_id() != self._kafka.cluster_id:
                    raise Unavailable("the broker is another cluster now")
                log.warning("log begins again", consumer=self.name, partition=record.partition, was=behind)
                async with self._db.transaction() as tx:
                    await offset.advance(tx, self._feed, {record.partition: (behind, record.offset)})
                self._offsets[record.partition] = record.offset

    def _decode(self, record: Message) -> _Decoded[M]:
        try:
            message = self._codec.decode(record.payload)
        except Rejected as fault:
            return _Decoded(record, None, fault)
        if self._verifier is None:
            return _Decoded(record, Delivery(None, message))
        try:
            return _Decoded(record, Delivery(self._verifier.verify(record.token, self._now()), message))
        except Rejected as fault:
            return _Decoded(record, Delivery(None, message), fault)

    async def _handle_or_halve(self, batch: list[_Decoded[M]]) -> None:
        try:
            await self._commit(batch)
        except (*GONE, *RETRIED, Unavailable, PartitionLost, asyncio.CancelledError):
            raise
        except Exception as error:
            if len(batch) == 1:
                log.exception("message goes to the dead letters", consumer=self.name)
                await self._commit_buried(batch[0], f"{type(error).__name__}: {error}")
                return
            middle = len(batch) // 2
            await self._handle_or_halve(batch[:middle])
            await self._handle_or_halve(batch[middle:])

    async def _commit(self, batch: list[_Decoded[M]]) -> None:
        following = await self._db.attempt(partial(self._do, batch))
        faultpoint.reach("consumer.after_commit")
        self._offsets.update(following)

    async def _do(self, batch: Sequence[_Decoded[M]], tx: Transaction) -> dict[int, int]:
        """Do what the messages ask; return the offsets that follow them."""
        following = await self._advance(tx, [each.record for each in batch])
        for each in batch:
            if each.fault is not None:
                await self._refuse(tx, each, each.fault)
        if good := [each.delivery for each in batch if each.fault is None and each.delivery is not None]:
            await self._handle(tx, good)
        faultpoint.reach("consumer.before_commit")
        return following

    async def _advance(self, tx: Transaction, records: Sequence[Message]) -> dict[int, int]:
        following = {record.partition: record.offset + 1 for record in records}
        moves = {partition: (self._offsets[partition], after) for partition, after in following.items()}
        await offset.advance(tx, self._feed, moves)
        return following

    async def _refuse(self, tx: Transaction, decoded: _Decoded[M], fault: Rejected) -> None:
        log.warning("message refused", consumer=self.name, code=fault.code, error=fault.message)
        if decoded.delivery is not None and self._on_refused is not None and self._verifier is not None:
            claimed = self._verifier.claimed_subject(decoded.record.token)
            await self._on_refused(tx, decoded.delivery.message, fault, claimed)
            return
        await dead_letter.bury(tx, self._feed, _letter(decoded, f"{fault.code}: {fault.message}"))

    async def _commit_buried(self, decoded: _Decoded[M], error: str) -> None:
        async with self._db.transaction() as tx:
            following = await self._advance(tx, [decoded.record])
            await dead_letter.bury(tx, self._feed, _letter(decoded, error))
            await self._tell_buried(tx, decoded)
        self._offsets.update(following)

    async def _tell_buried(self, tx: Transaction, decoded: _Decoded[M]) -> None:
        """Let whoever waits for an answer know that none will come of it."""
        delivery = decoded.delivery
        if self._on_refused is None or delivery is None or delivery.principal is None:
            return
        fault = Rejected(
            "NOT_HANDLED",
            "a fault of the system kept this from being handled",
            "nothing was changed; an operator finds it with `wms dead-letters`",
        )
        await self._on_refused(tx, delivery.message, fault, delivery.principal.owner)

    async def replay_one(self) -> bool:
        """Handle one dead letter that an operator wants tried again; return whether there was one."""
        letter_id = None
        try:
            async with self._db.transaction() as tx:
                row = await dead_letter.to_replay(tx, self.name)
                if row is None:
                    return False
                letter_id = row["dead_letter_id"]
                await self._replay(tx, row)
                await dead_letter.replayed(tx, letter_id)
        except (*GONE, *RETRIED, Unavailable):
            raise
        except Exception as error:
            if letter_id is None:
                raise
            async with self._db.transaction() as tx:
                await dead_letter.replay_failed(tx, letter_id, f"{type(error).__name__}: {error}")
        return True

    async def _replay(self, tx: Transaction, row: Any) -> None:
        message = self._codec.decode(row["payload"])
        principal = msgspec.json.decode(row["principal"], type=Principal) if row["principal"] else None
        if principal is None and self._verifier is not None:
            raise Rejected("UNVERIFIED", "its sender was not verified when it came", "have it sent again")
        await self._handle(tx, [Delivery(principal, message)])


class _Heard:
    """Tells a reader that waits from one that hangs: a broker answers fetches also when it has nothing."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._answered_at = 0

    def something(self) -> None:
        """Note that messages came."""
        self._since = time.monotonic()

    def answered(self, unread: int, answered_at: int) -> bool:
        """Return whether the broker has answered anew that there is nothing; Unavailable if it has not for too long."""
        now = time.monotonic()
        if unread == 0 and answered_at > self._answered_at:
            self._since, self._answered_at = now, answered_at
            return True
        if now - self._since > STUCK_AFTER_SECONDS:
            raise Unavailable(f"nothing heard from the broker for {STUCK_AFTER_SECONDS:g} s")
        return False


async def _together(lanes: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all; when one fails the others end with their batches in hand, and what failed first is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(lane)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            # It stays for the next to read; to raise it here would make the cancellation forgotten.
            log.warning("last batch not handled", error=repr(error))
        raise


def _letter(decoded: _Decoded[Any], error: str) -> DeadLetter:
    principal = decoded.delivery.principal if decoded.delivery else None
    return DeadLetter(
        partition=decoded.record.partition,
        offset=decoded.record.offset,
        key=decoded.record.key,
        payload=decoded.record.payload,
        principal=msgspec.json.encode(principal).decode() if principal else None,
        error=error,
    )
