"""The backlog of a consumer: messages that are parked in the database so that other owners' messages are handled first.

The owner whose parked messages used the least processing time is next. Each owner's messages keep their order.
"""

import time
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from wms.bus.delivery import Decoded
from wms.bus.handling import ENDED_PROCESS, Handling, why
from wms.bus.kafka import Message
from wms.bus.message_preparation import MessagePreparation
from wms.bus.slow_messages import SlowMessageNotes
from wms.bus.turns import Turns, Whose
from wms.cancellation import to_its_end
from wms.db import dead_letter, parked
from wms.db.database import Transaction
from wms.db.parked import Head
from wms.errors import Rejected

log = structlog.get_logger()

M = TypeVar("M")

HEAD = Head(limit=64, size=262_144)


class Backlog(Generic[M]):
    """Handles the parked messages of one consumer, beside the messages that it reads from Kafka."""

    def __init__(
        self,
        handling: Handling[M],
        turns: Turns,
        preparing: MessagePreparation[M] | None,
        noting: SlowMessageNotes,
    ) -> None:
        self._handling = handling
        self._turns = turns
        self._preparing = preparing
        self._noting = noting
        self.handled = 0
        self._busy_since: float | None = None

    def busy_seconds(self) -> float:
        """Return for how many seconds the current batch of parked messages has been handled so far; 0 if none is in work."""
        return 0.0 if self._busy_since is None else time.monotonic() - self._busy_since

    async def turn(self) -> bool:
        """Handle a batch of parked messages of the owner that used the least processing time. Return whether any were parked."""
        whose = self._turns.next()
        if whose is None:
            return False
        self._busy_since = time.monotonic()
        try:
            await self._turn(whose, self._busy_since)
        finally:
            self._busy_since = None
        return True

    async def _turn(self, whose: Whose, began: float) -> None:
        known = self._turns.parked_of(whose)
        async with self._handling.db.transaction() as tx:
            rows = await parked.first(tx, self._handling.feed.consumer, whose, HEAD, self._noting.instance_id)
        gone = await self._handle(rows) if rows else known
        now = time.monotonic()
        self._turns.took(whose, now - began, gone, now)

    async def _handle(self, rows: Sequence[Any]) -> int:
        """Handle parked messages, which are rows of the database. Return how many were handled.

        If the first may have killed another instance, handle it alone, or bury it if a second one died while it was alone.
        """
        deaths = rows[0]["deaths"] if rows[0]["is_suspect"] else 0
        if deaths > 1 and rows[0]["taken_alone"]:
            await self._bury(rows[:1], "it was in hand when the process ended", ENDED_PROCESS)
            return 1
        if deaths:
            rows = rows[:1]
        batch = [self._decode(row) for row in rows]
        async with self._noting.parked([row["parked_id"] for row in rows], deaths):
            if self._preparing is not None:
                # A cancelled task need not wait for this: nothing is committed yet, and the work will be begun again.
                batch = await self._preparing.whole(batch)
            await to_its_end(self._commit_or_divide(rows, batch))
        self.handled += len(rows)
        return len(rows)

    async def _commit_or_divide(self, rows: Sequence[Any], batch: Sequence[Decoded[M]]) -> None:
        began = time.monotonic()
        try:
            async with self._handling.db.transaction() as tx:
                await self._commit(tx, rows, batch)
        except Exception as error:
            if not self._handling.is_to_blame(error, began):
                raise
            if len(rows) == 1:
                log.exception("message goes to the dead letters", consumer=self._handling.feed.consumer)
                await self._bury(rows, f"{type(error).__name__}: {error}", why(error))
                return
            for row, each in zip(rows, batch, strict=True):
                await self._commit_or_divide([row], [each])

    async def _commit(self, tx: Transaction, rows: Sequence[Any], batch: Sequence[Decoded[M]]) -> None:
        # Another instance, which has lost these partitions meanwhile, may have handled them.
        there = await parked.remove(tx, [row["parked_id"] for row in rows])
        mine = [each for row, each in zip(rows, batch, strict=True) if row["parked_id"] in there]
        await self._handling.settle(tx, mine)

    async def _bury(self, rows: Sequence[Any], error: str, fault: Rejected) -> None:
        async with self._handling.db.transaction() as tx:
            there = await parked.remove(tx, [row["parked_id"] for row in rows])
            for row in rows:
                if row["parked_id"] in there:
                    decoded = self._decode(row)
                    feed = msgspec.structs.replace(self._handling.feed, cluster_id=row["cluster_id"])
                    await dead_letter.bury(tx, feed, decoded.letter(error))
                    await self._handling.tell_buried(tx, decoded.delivery, fault)

    def _decode(self, row: Any) -> Decoded[M]:
        record = Message(row["partition"], row["message_offset"], row["key"], row["payload"], "")
        try:
            return Decoded(record, self._handling.decode_kept(row["payload"], row["principal"]))
        except Rejected as fault:
            return Decoded(record, None, fault, str(fault))
