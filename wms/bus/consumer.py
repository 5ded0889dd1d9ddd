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
from wms.bus.membership import Membership
from wms.bus.probe import ConsumerHealth
from wms.bus.progress import STALLED_AFTER_SECONDS, PartitionHealth, Progress
from wms.bus.topics import Topic
from wms.db import dead_letter, offset
from wms.db.database import GONE, RETRIED, Database, Transaction
from wms.db.dead_letter import DeadLetter
from wms.db.offset import Feed, PartitionLost
from wms.errors import Rejected, Unavailable
from wms.messages.wire import Codec

log = structlog.get_logger()

M = TypeVar("M")

GIVE_UP_AFTER_SECONDS = 60.0
"""A consumer that could reach neither broker nor database for so long ends its process, to begin afresh."""

POLL_SECONDS = 0.2
RETRY_SECONDS = 0.5
SHARE_SECONDS = 0.1
"""Between looks for partitions to handle, while there are none."""


class Delivery(msgspec.Struct, Generic[M], frozen=True):
    """One message and who sent it."""

    principal: Principal | None
    message: M


Handler = Callable[[Transaction, list[Delivery[M]]], Awaitable[None]]
OnRefused = Callable[[Transaction, M, Rejected, str], Awaitable[None]]
"""Told of a message whose token was not accepted, and whose it claimed to be: to say so, never to act on it."""


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
        self._readers: set[Reader] = set()
        """Each lane has one of its own, lest it wait for what another has not yet taken."""
        self._reading: asyncio.Future[None] | None = None
        self._failing_since: float | None = None
        self.progress = Progress()
        self.handled = 0

    @property
    def lag(self) -> int:
        """Messages of this instance's partitions that are still to be handled, as far as the broker told."""
        return sum(each.lag for each in self.health())

    async def probe(self) -> None:
        """Send a probe into each assigned partition."""
        assigned = self._membership.assigned(self.name, self.topic.partitions)
        keys, payloads = self.progress.probes.prepare(assigned, self.topic.partitions)
        if keys:
            await self._kafka.send_many(self.topic.name, keys, payloads)

    def probe_health(self) -> ConsumerHealth:
        """Return how probes fare in the partitions of this instance."""
        return self.progress.probes.health(self.topic.name, self.topic.partitions)

    def health(self) -> list[PartitionHealth]:
        """Return how each partition does that the last heartbeat gave this instance, read or not."""
        self.progress.assign(self._membership.assigned(self.name, self.topic.partitions))
        return self.progress.health()

    async def run(self) -> None:
        """Handle batches until cancelled; a batch in hand is finished first. Fails when nothing works for too long."""
        while True:
            pause = SHARE_SECONDS
            self._reading = asyncio.ensure_future(self._read())
            try:
                await self._reading
            except asyncio.CancelledError:
                if _is_cancelled():
                    raise
            except (*GONE, *RETRIED, Unavailable) as error:
                pause = RETRY_SECONDS
                self._failing_since = self._failing_since or time.monotonic()
                log.warning("consumer waits", consumer=self.name, error=repr(error))
                if time.monotonic() - self._failing_since > GIVE_UP_AFTER_SECONDS:
                    raise
            await asyncio.sleep(pause)

    def begin_anew(self) -> None:
        """Give all readers up and take new ones, when batches in hand have ended."""
        log.warning("readers are replaced", consumer=self.name)
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> None:
        """Handle batches until the shares change or something fails: nothing is guessed after that."""
        round_ = _Round(self._share())
        if not round_.wanted:
            self._failing_since = None
            return
        self.progress.assign(round_.wanted)
        try:
            async with self._db.transaction() as tx:
                self._offsets = await offset.begin(tx, self._feed, round_.wanted)
            log.info("partitions assigned", consumer=self.name, offsets=self._offsets)
            lanes = [part for lane in range(self._lanes) if (part := round_.wanted[lane :: self._lanes])]
            await _together([self._follow(round_, part) for part in lanes])
        except PartitionLost as lost:
            log.warning("partition lost", consumer=self.name, error=str(lost))
        finally:
            self._offsets = {}

    def _share(self) -> tuple[int, ...]:
        return self._membership.share(self.name, self.topic.partitions)

    async def _follow(self, round_: "_Round", lane: tuple[int, ...]) -> None:
        """Handle the batches of some partitions, one after another, until the shares change or another lane ends."""
        reader = await self._kafka.reader(self.topic.name)
        try:
            reader.assign({each: self._offsets[each] for each in lane})
            self._readers.add(reader)
            self.progress.opened(lane, self._offsets)
            while not round_.is_over and self._share() == round_.wanted:
                await self._turn(reader, lane)
        finally:
            # The shares may be the same again by the time that another lane looks: it must end too, lest it go on alone.
            round_.is_over = True
            self._readers.discard(reader)
            self.progress.closed(lane)
            await reader.close()

    async def _turn(self, reader: Reader, lane: tuple[int, ...]) -> None:
        records = await reader.poll(POLL_SECONDS, self._batch)
        if records:
            self._hurry()
            await _to_its_end(self._take_in_hand(lane, records))
            self._failing_since = None
        if await self._listen(reader, lane):
            self._failing_since = None
        elif unheard := self.progress.unheard(lane):
            raise Unavailable(f"partitions {unheard}: the broker is silent for {STALLED_AFTER_SECONDS:g} s")

    async def _listen(self, reader: Reader, lane: Sequence[int]) -> bool:
        """Note what the broker says of each partition; return whether it said anew of one that it has no more."""
        found = [
            self.progress.heard(
                each,
                reader.high_water(each),
                unread=await reader.unread_of(each),
                answered_at=reader.answered_at(each),
            )
            for each in lane
        ]
        return any(found)

    async def _take_in_hand(self, lane: Sequence[int], records: Sequence[Message]) -> None:
        first = {record.partition: record.offset for record in reversed(records)}
        self.progress.taken(lane, first)
        try:
            await self._take(records)
        finally:
            self.progress.done(lane)

    def _hurry(self) -> None:
        # Where one message came the next may come to any partition.
        for each in self._readers:
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
        if self.progress.probes.recognise(record):
            return _Decoded(record, None)
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
        self._move(following)

    def _move(self, following: dict[int, int]) -> None:
        self._offsets.update(following)
        self.progress.moved(following)

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
        self._move(following)

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


class _Round:
    """One assignment of partitions: over for all lanes as soon as it is over for one."""

    def __init__(self, wanted: tuple[int, ...]) -> None:
        self.wanted = wanted
        self.is_over = False


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


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
