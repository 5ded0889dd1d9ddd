"""Handles batches of messages, each in one transaction that also moves the offsets. A message that fails becomes a dead letter."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

import msgspec
import structlog

from wms import faultpoint
from wms.auth.principal import Principal
from wms.auth.token import Verifier
from wms.bus.delivery import Decoded, Delivery, Handler, OnRefused
from wms.bus.kafka import Message
from wms.bus.message_preparation import MessagePreparation
from wms.db import dead_letter, offset, parked
from wms.db.database import GONE, RETRIED, Database, StatementTimeout, Transaction
from wms.db.offset import ConsumedTopic, PartitionLost
from wms.errors import Rejected, Unavailable
from wms.messages.wire import Codec, envelope

log = structlog.get_logger()

M = TypeVar("M")


class Handling(Generic[M]):
    """Handles the decoded messages of one consumer. A call of the handler is cancelled after `seconds` seconds."""

    def __init__(
        self,
        feed: ConsumedTopic,
        codec: Codec[M],
        handle: Handler[M],
        *,
        db: Database,
        verifier: Verifier | None,
        now: Callable[[], float],
        on_refused: OnRefused[M] | None,
        seconds: float,
        well_seconds: Callable[[], float] = lambda: math.inf,
    ) -> None:
        """Take what the handler needs. `well_seconds` returns for how many seconds Kafka and the database have answered without a gap."""
        self.feed = feed
        self.db = db
        self.offsets: dict[int, int] = {}
        self.on_moved: Callable[[dict[int, int]], None] = lambda _: None
        self.on_step: Callable[[Iterable[int]], None] = lambda _: None
        """A function that is called after each step of a batch, with the batch's partitions."""
        self._codec = codec
        self._handle = handle
        self._verifier = verifier
        self._now = now
        self._on_refused = on_refused
        self._seconds = seconds
        self._well_seconds = well_seconds
        self.preparing: MessagePreparation[M] | None = None

    def decode(self, record: Message, at: float | None = None) -> Decoded[M]:
        """Decode a record and verify its sender. The result has a fault if either fails; nothing is raised.

        The token must be valid at `at`, in seconds since 1970; None for now.
        """
        if record.fault:
            return Decoded(record, None, Rejected("UNREADABLE", record.fault))
        try:
            message = self._codec.decode(record.payload)
        except Exception as error:  # noqa: BLE001 - whatever the bytes do to the decoder is this message's fault
            return Decoded(record, None, _unreadable(error))
        if self._verifier is None:
            return Decoded(record, Delivery(None, message))
        try:
            at = self._now() if at is None else at
            return Decoded(record, Delivery(self._verifier.verify(record.token, at), message))
        except Exception as error:  # noqa: BLE001 - likewise of its token
            return Decoded(record, Delivery(None, message), _unreadable(error))

    def decode_kept(self, payload: bytes, principal: str | None) -> Delivery[M]:
        """Decode a message stored in the database, sent by `principal` (JSON), as verified when it arrived.

        Raise Rejected if it cannot be decoded, no sender was verified, or the sender was revoked since.
        """
        message = self._codec.decode(payload)
        sender = msgspec.json.decode(principal, type=Principal) if principal else None
        if sender is None and self._verifier is not None:
            raise Rejected("UNVERIFIED", "its sender was not verified when it came", "have it sent again")
        if sender is not None and self._verifier is not None:
            self._verifier.check_kept(sender)
        return Delivery(sender, message)

    async def handle(self, batch: Sequence[Decoded[M]], deferred: Sequence[Decoded[M]] = ()) -> None:
        """Handle the messages of `batch` and park those of `deferred`, in one transaction.

        If it fails, the batch is handled in halves, or message by message. A message that fails alone becomes a dead letter.
        """
        began = time.monotonic()
        try:
            await self._commit(batch, deferred)
        except Exception as error:
            if not self.is_to_blame(error, began):
                raise
            # One by one if it is slow: each half with the slow message would wait for it again.
            slow = isinstance(error, StatementTimeout)
            await self._divide(batch, deferred, error, 1 if slow else (len(batch) + len(deferred)) // 2)

    def is_to_blame(self, error: Exception, began: float) -> bool:
        """Return whether a message is to blame for an error of its handling, and not a server that was away.

        `began` is the monotonic time at which the handling began. A time limit that was exceeded is a message's fault only if the database
        answered others all the time.
        """
        if isinstance(error, StatementTimeout):
            return self._well_seconds() >= time.monotonic() - began
        return not isinstance(error, (*GONE, *RETRIED, Unavailable, PartitionLost))

    async def _divide(
        self, batch: Sequence[Decoded[M]], deferred: Sequence[Decoded[M]], error: Exception, size: int
    ) -> None:
        both = sorted((*batch, *deferred), key=lambda each: (each.record.partition, each.record.offset))
        if len(both) == 1:
            log.error("message goes to the dead letters", consumer=self.feed.consumer, exc_info=error)
            await self.bury(both[0], f"{type(error).__name__}: {error}", why(error))
            return
        parked_ = set(map(id, deferred))
        for begin in range(0, len(both), max(1, size)):
            part = both[begin : begin + max(1, size)]
            await self.handle(
                [each for each in part if id(each) not in parked_],
                [each for each in part if id(each) in parked_],
            )

    async def _commit(self, batch: Sequence[Decoded[M]], deferred: Sequence[Decoded[M]]) -> None:
        following = await self.db.attempt(partial(self._do, batch, deferred))
        faultpoint.reach("consumer.after_commit")
        self._move(following)

    def _move(self, following: dict[int, int]) -> None:
        self.offsets.update(following)
        self.on_moved(following)

    async def _do(
        self, batch: Sequence[Decoded[M]], deferred: Sequence[Decoded[M]], tx: Transaction
    ) -> dict[int, int]:
        """Handle a batch and park deferred messages in the transaction. Return, by partition, the offset after the last of them."""
        following = await self._advance(tx, [each.record for each in (*batch, *deferred)])
        tx.on_statement = partial(self.on_step, following.keys())
        if deferred:
            await parked.park(tx, self.feed, [(each.owner, each.letter("")) for each in deferred])
        await self.settle(tx, batch)
        faultpoint.reach("consumer.before_commit")
        return following

    async def settle(self, tx: Transaction, batch: Sequence[Decoded[M]]) -> None:
        """Handle the valid messages of a batch in the transaction. Refuse those with faults, or store them as dead letters."""
        for each in batch:
            if each.error and each.fault is not None:
                await dead_letter.bury(tx, self.feed, each.letter(each.error))
                await self.tell_buried(tx, each.delivery, each.fault)
            elif each.fault is not None:
                await self._refuse(tx, each, each.fault)
        await self._carry_out(
            tx, [each.delivery for each in batch if each.fault is None and each.delivery is not None]
        )

    async def _carry_out(self, tx: Transaction, deliveries: list[Delivery[M]]) -> None:
        if deliveries:
            async with asyncio.timeout(self._seconds):
                await self._handle(tx, deliveries)

    async def _advance(self, tx: Transaction, records: Sequence[Message]) -> dict[int, int]:
        following: dict[int, int] = {}
        for record in records:
            following[record.partition] = max(following.get(record.partition, 0), record.offset + 1)
        moves = {partition: (self.offsets[partition], after) for partition, after in following.items()}
        await offset.advance(tx, self.feed, moves)
        return following

    async def _refuse(self, tx: Transaction, decoded: Decoded[M], fault: Rejected) -> None:
        log.warning("message refused", consumer=self.feed.consumer, code=fault.code, error=fault.message)
        if decoded.delivery is not None and self._on_refused is not None and self._verifier is not None:
            claimed = decoded.owner or self._verifier.subject(decoded.record.token)
            await self._on_refused(tx, decoded.delivery.message, fault, claimed)
            return
        await dead_letter.bury(tx, self.feed, decoded.letter(f"{fault.code}: {fault.message}"))
        await self._answer_unread(tx, decoded.record, fault)

    async def _answer_unread(self, tx: Transaction, record: Message, fault: Rejected) -> None:
        """Tell a sender with a valid token that its message is unreadable, if at least the message's id can be read."""
        if self._on_refused is None or self._verifier is None or record.fault:
            return
        read = envelope(record.payload)
        if read is None:
            return
        try:
            sender = self._verifier.verify(record.token, self._now())
        except Rejected:
            return
        # A refusal uses only those fields of a message that an envelope has.
        await self._on_refused(tx, cast("M", read), fault, sender.owner)

    async def bury(self, decoded: Decoded[M], error: str, why: Rejected) -> None:
        """Store a message as a dead letter with the text `error`, move the offset past it, and answer its sender with `why`."""
        try:
            following = await self._bury(decoded, error, why)
        except (*GONE, *RETRIED, Unavailable, PartitionLost):
            raise
        except Exception:
            log.exception("sender of a dead letter not told", consumer=self.feed.consumer)
            following = await self._bury(decoded, error, None)
        self._move(following)

    async def _bury(self, decoded: Decoded[M], error: str, why: Rejected | None) -> dict[int, int]:
        async with self.db.transaction() as tx:
            following = await self._advance(tx, [decoded.record])
            await dead_letter.bury(tx, self.feed, decoded.letter(error))
            if why is not None:
                await self.tell_buried(tx, decoded.delivery, why)
        return following

    async def tell_buried(self, tx: Transaction, delivery: Delivery[M] | None, why: Rejected) -> None:
        """Tell the verified sender of a message, if there is one, that it became a dead letter and why."""
        if self._on_refused is not None and delivery is not None and delivery.principal is not None:
            await self._on_refused(tx, delivery.message, why, delivery.principal.owner)

    async def replay_one(self) -> bool:
        """Handle one dead letter of this consumer that an operator marked for replay, and store the result.

        Return whether there was one.
        """
        letter_id = None
        began = time.monotonic()
        try:
            async with self.db.transaction() as tx:
                row = await dead_letter.to_replay(tx, self.feed.consumer)
                if row is None:
                    return False
                letter_id = row["dead_letter_id"]
                await self._replay(tx, row)
                await dead_letter.replayed(tx, letter_id)
        except Exception as error:
            if letter_id is None or not self.is_to_blame(error, began):
                raise
            async with self.db.transaction() as tx:
                await dead_letter.replay_failed(tx, letter_id, f"{type(error).__name__}: {error}")
        return True

    async def _replay(self, tx: Transaction, row: Any) -> None:
        record = Message(row["partition"], row["message_offset"], row["key"], row["payload"], "")
        decoded = Decoded(record, self.decode_kept(row["payload"], row["principal"]))
        if self.preparing is not None:
            (decoded,) = await self.preparing.whole([decoded])
        if decoded.fault is not None:
            raise decoded.fault
        await self.settle(tx, [decoded])


def _unreadable(error: Exception) -> Rejected:
    return error if isinstance(error, Rejected) else Rejected("UNREADABLE", repr(error))


def why(error: Exception) -> Rejected:
    """Return the refusal that the sender of a message gets after `error`.

    It is `error` itself if that is Rejected, TOO_SLOW after a statement's timeout, and NOT_HANDLED otherwise.
    """
    if isinstance(error, StatementTimeout):
        return Rejected("TOO_SLOW", "this took longer than a request may", "ask for less at a time")
    return error if isinstance(error, Rejected) else NOT_HANDLED


NOT_HANDLED = Rejected(
    "NOT_HANDLED",
    "a fault of the system kept this from being handled",
    "nothing was changed; an operator finds it with `wms dead-letters`",
)
ENDED_PROCESS = Rejected(
    "SET_ASIDE",
    "the process that handled this ended while it did",
    "nothing was changed; an operator finds it with `wms dead-letters`",
)
