"""The relay: sends the messages of committed transactions to Kafka, at once or, after a crash, a little later.

Right after a commit its messages are passed to the relay in memory. Messages that stay longer in the outbox belong to a dead process, and
any relay takes them. So a message may be sent twice but is never lost. Only answers held in memory may be lost, and clients ask again. Each
topic has a sending task of its own, so that an unresponsive topic delays no other.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence

import structlog

from wms import faultpoint
from wms.auth.orders import OrderKeys
from wms.auth.service_signatures import ServiceSignatures
from wms.bus.kafka import Kafka
from wms.bus.topics import find
from wms.db import outbox
from wms.db.database import GONE, RETRIED, Database, Parcel
from wms.errors import Rejected, Unavailable
from wms.messages.replies import INBOX_PREFIX
from wms.messages.site_inbox import PREFIX as SITE_PREFIX

log = structlog.get_logger()

SWEEP_EVERY_SECONDS = 1.0
SWEEP_AT_ONCE = 200
TAKEN_FOR_SECONDS = 10.0
TROUBLE_AFTER_SECONDS = 8.0
"""A topic is reported as in trouble if Kafka has accepted none of its messages for this many seconds."""
IN_HAND_LIMIT = 2_000
"""While more outbox rows than this are in memory, the relay takes over no rows that other processes left."""
FORGET_EVERY_SECONDS = 0.25
"""How often, in seconds, sent messages are deleted from the outbox. A deletion after each batch would cost as much as the batch itself."""


class Relay:
    """Sends the outbox messages of this process to Kafka, and those that dead processes left."""

    name = "relay"

    def __init__(
        self,
        db: Database,
        kafka: Kafka,
        orders: OrderKeys | None = None,
        notices: ServiceSignatures | None = None,
    ) -> None:
        """Register with `db`, whose transactions pass their messages to the relay from now on.

        `orders` signs messages to pilots, `notices` those between services. Without a signer, such messages are dropped with an error in
        the log.
        """
        self._db = db
        self._kafka = kafka
        self._orders = orders
        self._notices = notices
        self._waiting: dict[str, list[Parcel]] = {}
        self._busy: dict[str, float] = {}
        """For each topic that is being sent to, the monotonic time when Kafka last accepted messages for it."""
        self._in_hand: set[int] = set()
        self._replies_in_hand = 0
        self._acknowledged: list[int] = []
        self._posted, self._forgettable, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._draining = asyncio.Event()
        self.sent = 0
        db.on_posted = self._take

    def _take(self, parcels: Sequence[Parcel]) -> None:
        for parcel in parcels:
            if parcel.outbox_id is None:
                self._replies_in_hand += 1
            elif parcel.outbox_id in self._in_hand:
                continue
            else:
                self._in_hand.add(parcel.outbox_id)
            self._waiting.setdefault(parcel.topic, []).append(parcel)
        if self._waiting:
            self._idle.clear()
            self._posted.set()

    def _let_go(self, outbox_ids: Sequence[int], replies: int = 0) -> None:
        self._in_hand.difference_update(outbox_ids)
        self._replies_in_hand -= replies
        if not self._in_hand and not self._replies_in_hand:
            self._idle.set()

    async def run(self) -> None:
        """Send messages until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sweep())
            group.create_task(self._forget())
            while True:
                await self._posted.wait()
                self._posted.clear()
                for topic in self._waiting.keys() - self._busy.keys():
                    self._busy[topic] = time.monotonic()
                    group.create_task(self._empty(topic))

    def trouble(self) -> str:
        """Return a sentence on the topic whose messages Kafka has not accepted for the longest time; empty if there is no such topic."""
        topic = min(self._busy, key=self._busy.__getitem__, default="")
        seconds = time.monotonic() - self._busy[topic] if topic else 0.0
        return f"{topic} takes nothing for {seconds:.0f} s" if seconds > TROUBLE_AFTER_SECONDS else ""

    async def drain(self, within: float) -> None:
        """Wait until all messages in memory are sent, at most `within` seconds. The others stay in the outbox."""
        self._draining.set()
        try:
            async with asyncio.timeout(within):
                await self._idle.wait()
        except TimeoutError:
            log.warning("left in the outbox", parcels=len(self._in_hand))

    async def _empty(self, topic: str) -> None:
        gathered_seconds = find(topic).gathered_seconds
        try:
            while topic in self._waiting:
                self._busy[topic] = time.monotonic()
                await self._gather(gathered_seconds)
                await self._send(topic, self._waiting.pop(topic))
        finally:
            del self._busy[topic]

    async def _gather(self, seconds: float) -> None:
        """Wait `seconds` seconds for more messages, but no longer once `drain` is called."""
        if seconds:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._draining.wait()

    async def _send(self, topic: str, parcels: Sequence[Parcel]) -> None:
        faultpoint.reach("relay.before_send")
        keys = [key for parcel in parcels for key in parcel.keys]
        ids = [parcel.outbox_id for parcel in parcels if parcel.outbox_id is not None]
        replies = len(parcels) - len(ids)
        try:
            if await self._is_heard(topic):
                payloads = [payload for parcel in parcels for payload in parcel.payloads]
                await self._kafka.send_many(topic, keys, self._signed(topic, keys, payloads))
            else:
                log.info("nobody listens, dropped", topic=topic, messages=len(keys))
        except Unavailable as error:
            log.warning("not sent, stays in the outbox", topic=topic, messages=len(keys), error=str(error))
            self._let_go(ids, replies)
            return
        except Rejected as error:
            if len(parcels) > 1:
                for parcel in parcels:
                    await self._send(topic, [parcel])
                return
            # It would be refused and swept again for ever.
            log.error("messages refused for good, dropped", topic=topic, messages=len(keys), error=str(error))  # noqa: TRY400
        else:
            self.sent += len(keys)
        faultpoint.reach("relay.after_send")
        self._let_go((), replies)
        if ids:
            self._acknowledged += ids
            self._forgettable.set()

    def _signed(self, topic: str, keys: Sequence[bytes], payloads: Sequence[bytes]) -> Sequence[bytes]:
        """Return the payloads to send. Those to pilots and those between services get signatures; others are unchanged."""
        if find(topic).is_internal:
            return self._as_notices(topic, payloads)
        if not topic.startswith(SITE_PREFIX):
            return payloads
        if self._orders is None:
            raise Rejected("ORDERS_UNSIGNED", "this process has no key to sign orders with")
        return [self._orders.sign(topic, key, payload) for key, payload in zip(keys, payloads, strict=True)]

    def _as_notices(self, topic: str, payloads: Sequence[bytes]) -> Sequence[bytes]:
        if self._notices is None:
            raise Rejected("NOTICES_UNSIGNED", "this process has no key to sign notices with")
        return [self._notices.sign(topic, payload) for payload in payloads]

    async def _is_heard(self, topic: str) -> bool:
        """Return whether the topic exists. Only a user's inbox may be missing, as for a forged user name.

        A user's client creates its inbox before it sends a request.
        """
        return not topic.startswith(INBOX_PREFIX) or await self._kafka.exists(topic)

    async def _forget(self) -> None:
        """Delete messages that Kafka has acknowledged from the outbox, until cancelled."""
        while True:
            await self._forgettable.wait()
            await self._gather(FORGET_EVERY_SECONDS)
            self._forgettable.clear()
            ids, self._acknowledged = self._acknowledged, []
            try:
                async with self._db.transaction() as tx:
                    await outbox.delete(tx, ids)
            except (*GONE, *RETRIED) as error:
                log.warning("sent messages not yet forgotten", error=repr(error))
                self._acknowledged += ids
                self._forgettable.set()
                await asyncio.sleep(SWEEP_EVERY_SECONDS)
                continue
            faultpoint.reach("relay.after_delete")
            self._let_go(ids)

    async def _sweep(self) -> None:
        while True:
            due = await self._overdue() if len(self._in_hand) < IN_HAND_LIMIT else []
            if due:
                log.info("outbox swept", parcels=len(due))
                self._take(due)
            if len(due) < SWEEP_AT_ONCE:
                await asyncio.sleep(SWEEP_EVERY_SECONDS)

    async def _overdue(self) -> list[Parcel]:
        try:
            async with self._db.transaction() as tx:
                return await outbox.take_due(tx, SWEEP_AT_ONCE, TAKEN_FOR_SECONDS)
        except (*GONE, *RETRIED) as error:
            log.warning("outbox not swept", error=repr(error))
            return []
