"""A consumer: reads batches of one Kafka topic, and handles each in one transaction that also moves the offset.

Live instances divide the partitions among themselves by their order in Postgres. Two instances may briefly claim the same partition; the
compare-and-set on the offset lets only one of them commit. So each message takes effect once, whatever fails. A batch that fails is halved
until the failing message is alone: it goes to the dead letters, and the others are handled.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Generic, TypeVar

import msgspec
import structlog

from wms.auth.token import Verifier
from wms.bus.backlog import Backlog
from wms.bus.batch_size import BatchSize
from wms.bus.consumer_settings import ONE_LANE, ConsumerSettings
from wms.bus.delivery import Decoded, Delivery, Handler, OnRefused, Preparation
from wms.bus.handling import ENDED_PROCESS, Handling
from wms.bus.kafka import Kafka, Message, Reader
from wms.bus.log_gaps import LogGaps
from wms.bus.membership import Membership
from wms.bus.message_preparation import MessagePreparation
from wms.bus.probe import ConsumerHealth, is_probe
from wms.bus.progress import STALLED_AFTER_SECONDS, ConsumerProgress, PartitionHealth
from wms.bus.rounds import Round, together
from wms.bus.slow_messages import SlowMessageNotes
from wms.bus.time_slices import TimeSlices
from wms.bus.topics import Topic
from wms.bus.turns import Turns
from wms.cancellation import is_cancelled, to_its_end
from wms.db import in_hand, offset, parked
from wms.db.database import Database, Transaction
from wms.db.in_hand import Span, Suspects
from wms.db.offset import ConsumedTopic, PartitionLost
from wms.errors import Rejected, Unavailable
from wms.messages.wire import Codec

__all__ = ["ONE_LANE", "Consumer", "ConsumerSettings", "Delivery", "Handler", "OnRefused"]

log = structlog.get_logger()

M = TypeVar("M")
T = TypeVar("T")

POLL_SECONDS = 0.2
LISTEN_SECONDS = 0.25
"""The least time, in seconds, between two checks of what Kafka reports of a lane's partitions while messages arrive."""
SHARE_SECONDS = 0.1
"""How often, in seconds, an instance without partitions checks whether it has been assigned some."""


class Consumer(Generic[M]):
    """Reads one Kafka topic for one purpose, and calls `handle` with batches of its messages. Offsets are stored under `name`.

    The partitions are divided into lanes, each with one transaction at a time. While one lane waits for the database another works. `admit`
    may refuse a message before it is handled; `on_refused` answers the senders of refused messages. `look` is called in the transaction that loads
    the offsets; it raises an error if the database is not the one that it was.
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
        policy: ConsumerSettings = ONE_LANE,
        preparation: Preparation[Delivery[M]] | None = None,
        slices: TimeSlices | None = None,
        admit: Callable[[Decoded[M]], Rejected | None] | None = None,
        look: Callable[[Transaction], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self.topic = topic
        self._policy = policy
        self._db = db
        self._kafka = kafka
        self._membership = membership
        self._admit = admit
        self._look = look
        self._feed = ConsumedTopic(kafka.cluster_id, name, topic.name)
        self._handling = Handling(
            self._feed,
            codec,
            handle,
            db=db,
            verifier=verifier,
            now=now,
            on_refused=on_refused,
            seconds=policy.seconds,
            well_seconds=membership.good_seconds,
        )
        self.progress = ConsumerProgress()
        self._handling.on_moved = self.progress.moved
        self._handling.on_step = self.progress.stepped
        self._noting = SlowMessageNotes(db, self._feed, membership.instance_id)
        self._preparing = (
            MessagePreparation(preparation, slices or TimeSlices()) if preparation is not None else None
        )
        self._handling.preparing = self._preparing
        self._gaps = LogGaps(self._handling, kafka)
        self._turns = Turns() if policy.is_fair else None
        self._backlog = (
            Backlog(self._handling, self._turns, self._preparing, self._noting) if self._turns else None
        )
        self._size = BatchSize(policy.batch, policy.batch_bytes)
        self._suspects: dict[int, Suspects] = {}
        """By partition, the messages that another instance was handling when it died."""
        self._in_hand: dict[int, Span] = {}
        self._readers: set[Reader] = set()
        """The open Kafka readers, one for each lane, so that no lane waits for the messages of another."""
        self._reading: asyncio.Future[None] | None = None
        self._listened_at: dict[tuple[int, ...], float] = {}
        self._seconds_each = 0.0
        """How many seconds a message took to handle, as a moving average over the last batches."""
        self._handled = 0

    @property
    def handled(self) -> int:
        """How many messages this instance of the consumer has handled since it started, probes and parked messages included."""
        return self._handled + (self._backlog.handled if self._backlog else 0)

    @property
    def parked(self) -> int:
        """How many messages in this instance's partitions are parked in the database until their owner's turn."""
        return self._turns.waiting if self._turns else 0

    async def replay_one(self) -> bool:
        """Handle one dead letter of this consumer that an operator marked for replay. Return whether there was one."""
        return await self._handling.replay_one()

    @property
    def lag(self) -> int:
        """How many messages in this instance's partitions are not handled yet, parked ones included, by Kafka's last answers."""
        return sum(each.lag for each in self.health()) + self.parked

    async def probe(self) -> None:
        """Send a probe, a tiny message, to each partition of this instance. A probe that is read again shows that its partition is served."""
        assigned = self._membership.assigned(self.name, self.topic.partitions)
        keys, payloads = self.progress.probes.prepare(assigned, self.topic.partitions)
        if keys:
            await self._kafka.send_many(self.topic.name, keys, payloads)

    def probe_health(self) -> ConsumerHealth:
        """Return, for each partition of this instance, whether its probes come back and how fast."""
        return self.progress.probes.health(self.topic.name, self.topic.partitions)

    def health(self) -> list[PartitionHealth]:
        """Return the state of each partition that the last heartbeat assigned to this instance, whether it is read or not."""
        self.progress.assign(self._membership.assigned(self.name, self.topic.partitions))
        return self.progress.health()

    async def run(self) -> None:
        """Handle messages until cancelled; the current batch is finished first. Raise the errors of Kafka and of the database."""
        while True:
            self._reading = asyncio.ensure_future(self._read())
            try:
                await self._reading
            except asyncio.CancelledError:
                if is_cancelled():
                    raise
            await asyncio.sleep(SHARE_SECONDS)

    @property
    def in_hand(self) -> dict[int, Span]:
        """Which messages this instance is handling now: the first and the last offset in each partition."""
        return dict(self._in_hand)

    @property
    def feed(self) -> ConsumedTopic:
        """The cluster, consumer name and topic, under which offsets are stored."""
        return self._feed

    def busy_seconds(self) -> float:
        """Return for how many seconds the oldest batch that is being handled has taken so far; 0 if there is none."""
        parked_ = self._backlog.busy_seconds() if self._backlog else 0.0
        return max(self.progress.longest_batch_seconds(), parked_)

    def begin_anew(self) -> None:
        """Cancel the present reading and open new Kafka readers, for use when reading is stuck. Current batches are finished first."""
        log.warning("readers are replaced", consumer=self.name)
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> None:
        """Handle batches until this instance's partitions change or a lane fails."""
        round_ = Round(self._share())
        if not round_.wanted:
            return
        self.progress.assign(round_.wanted)
        try:
            await self._begin(round_.wanted)
            lanes = self._policy.lanes
            parts = [part for lane in range(lanes) if (part := round_.wanted[lane::lanes])]
            backlog = [self._work_off(round_, self._backlog)] if self._backlog else []
            await together([*(self._follow(round_, part) for part in parts), *backlog])
        except PartitionLost as lost:
            log.warning("partition lost", consumer=self.name, error=str(lost))
        finally:
            self._handling.offsets = {}

    async def _begin(self, wanted: tuple[int, ...]) -> None:
        """Load the offsets of the partitions `wanted`, the numbers of parked messages, and the messages that may have killed another instance."""
        async with self._db.transaction() as tx:
            if self._look is not None:
                await self._look(tx)
            self._handling.offsets = await offset.begin(tx, self._feed, wanted)
            await self._gaps.load(tx, wanted)
            await in_hand.forget(tx, self._feed, wanted, self._membership.instance_id)
            self._suspects = await in_hand.left(tx, self._feed, wanted, self._membership.instance_id)
            if self._turns is not None:
                rows = await parked.waiting(tx, self.name, wanted)
                self._turns.load({(row["partition"], row["owner"]): row["messages"] for row in rows})
        log.info("partitions assigned", consumer=self.name, offsets=self._handling.offsets)

    def _share(self) -> tuple[int, ...]:
        return self._membership.share(self.name, self.topic.partitions)

    async def _follow(self, round_: Round, lane: tuple[int, ...]) -> None:
        """Handle the batches of one lane in order, until this instance's partitions change or another lane ends."""
        reader = await self._kafka.reader(self.topic.name)
        try:
            reader.assign({each: self._handling.offsets[each] for each in lane})
            self._readers.add(reader)
            self.progress.opened(lane, self._handling.offsets)
            while not round_.is_over and self._share() == round_.wanted:
                await self._turn(round_, reader, lane)
        finally:
            # The partitions may be the same again when another lane looks. It must end too, or it would go on alone.
            round_.is_over = True
            self._readers.discard(reader)
            self.progress.closed(lane)
            await reader.close()

    async def _turn(self, round_: Round, reader: Reader, lane: tuple[int, ...]) -> None:
        records = await self._gaps.follow(reader, await reader.poll(POLL_SECONDS, self._policy.batch))
        if not all(map(is_probe, records)):
            self._hurry()
        for part in self._parts(records):
            if round_.is_over:
                return
            behind_seconds = await self._behind_seconds(reader, lane, len(records))
            await to_its_end(self._take_in_hand(lane, part, behind_seconds))
        if records and time.monotonic() - self._listened_at.get(lane, 0.0) < LISTEN_SECONDS:
            return
        if not await self._listen(reader, lane) and (unheard := self.progress.unheard(lane)):
            raise Unavailable(f"partitions {unheard}: the broker is silent for {STALLED_AFTER_SECONDS:g} s")

    def _parts(self, records: Sequence[Message]) -> Iterator[Sequence[Message]]:
        """Divide records into batches. Messages that may have killed another instance are alone, the others in full batches."""
        if not self._suspects:
            yield from self._size.parts(records)
            return
        for is_suspect, those in groupby(records, self._is_suspect):
            found = list(those)
            yield from ([each] for each in found) if is_suspect else self._size.parts(found)

    def _is_suspect(self, record: Message) -> bool:
        return self._deaths(record) > 0

    def _deaths(self, record: Message) -> int:
        """Return how many processes have died with this message in hand."""
        suspects = self._suspects.get(record.partition)
        return suspects.deaths if suspects is not None and record.offset <= suspects.last else 0

    async def _work_off(self, round_: Round, backlog: Backlog[M]) -> None:
        """Handle parked messages until the round ends: until the instance's partitions change or a lane fails."""
        while not round_.is_over:
            if not await backlog.turn():
                await asyncio.sleep(POLL_SECONDS)

    async def _behind_seconds(self, reader: Reader, lane: Sequence[int], polled: int) -> float:
        """Estimate how many seconds the unread messages of a lane take, with `polled` messages just read. 0 if owners take no turns."""
        if self._turns is None:
            return 0.0
        behind = sum([await reader.unread_of(each) for each in lane])
        return self._seconds_each * (behind + polled)

    async def _listen(self, reader: Reader, lane: tuple[int, ...]) -> bool:
        """Store Kafka's last answers on the partitions of a lane. Return whether any of them is new and reports no unread messages."""
        self._listened_at[lane] = time.monotonic()
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

    async def _take_in_hand(
        self, lane: Sequence[int], records: Sequence[Message], behind_seconds: float
    ) -> None:
        first = {record.partition: record.offset for record in reversed(records)}
        last = {record.partition: record.offset for record in records}
        spans = {each: (first[each], last[each]) for each in first}
        self.progress.taken(lane, first)
        self._in_hand |= spans
        try:
            async with self._noting.batch(spans, self._deaths(records[0])):
                await self._take(records, behind_seconds)
        finally:
            self.progress.done(lane)
            for each in spans:
                self._in_hand.pop(each, None)

    def _hurry(self) -> None:
        # After one message the next may come to any partition.
        for each in self._readers:
            each.hurry()

    async def _take(self, records: Sequence[Message], behind_seconds: float) -> None:
        began = time.monotonic()
        batch = [self._decode(record) for record in records]
        if self._suspects and self._is_condemned(records[0]):
            await self._handling.bury(batch[0], "it was in hand when the process ended", ENDED_PROCESS)
            return
        deferred: list[Decoded[M]] = []
        if self._turns is not None:
            batch, deferred = self._turns.split(batch, began, behind_seconds)
        if self._preparing is not None:
            stepped = partial(self.progress.stepped, {each.record.partition for each in batch})
            batch, more = await self._preparing.within_allowance(batch, stepped)
            deferred += more
        await self._handling.handle(batch, deferred)
        self._learn(records, batch, deferred, time.monotonic() - began)

    def _is_condemned(self, record: Message) -> bool:
        """Return whether two processes died with this message in hand, the second one with it alone, or one that knew that it died of it."""
        suspects = self._suspects.get(record.partition)
        return (
            suspects is not None and suspects.first == record.offset == suspects.last and suspects.deaths > 1
        )

    def _decode(self, record: Message) -> Decoded[M]:
        if self.progress.probes.recognise(record):
            return Decoded(record, None)
        if aside := self._gaps.kept_aside(record):
            return aside
        decoded = self._handling.decode(record)
        if self._admit is None or decoded.fault is not None:
            return decoded
        return msgspec.structs.replace(decoded, fault=self._admit(decoded))

    def _learn(
        self,
        records: Sequence[Message],
        batch: Sequence[Decoded[M]],
        deferred: Sequence[Decoded[M]],
        seconds: float,
    ) -> None:
        """Adapt the batch size and the owners' budgets to the duration of a batch."""
        self._handled += len(batch)
        self._size.took(seconds, len(records), sum(each.size for each in records))
        self._seconds_each += (seconds / len(records) - self._seconds_each) / 4
        if self._turns is not None:
            # The preparation of deferred messages may have begun: they are charged as well.
            self._turns.spent((*batch, *deferred), seconds, time.monotonic())
            self._turns.parked(deferred)
        log.debug("batch", consumer=self.name, messages=len(records), ms=round(seconds * 1000, 1))
