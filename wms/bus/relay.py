"""The relay: what committed transactions sent goes to the broker, at once or, after a crash, a little later.

Right after a commit its messages are handed over in memory. Whatever is still in the outbox after a while belongs to
a process that died in between, and any relay takes it. A message may therefore go out twice, never not at all.
"""

import asyncio

import structlog

from wms import faultpoint
from wms.bus.kafka import Kafka
from wms.db import outbox
from wms.db.database import GONE, RETRIED, Database, Parcel
from wms.errors import Unavailable

log = structlog.get_logger()

SWEEP_EVERY_SECONDS = 1.0
TAKEN_FOR_SECONDS = 10.0


class Relay:
    """Sends the outbox of this process, and what other processes left in theirs."""

    name = "relay"

    def __init__(self, db: Database, kafka: Kafka) -> None:
        self._db = db
        self._kafka = kafka
        self._ready: list[Parcel] = []
        self._wake = asyncio.Event()
        self.sent = 0
        db.on_posted = self._posted

    def _posted(self, parcels: list[Parcel]) -> None:
        self._ready.extend(parcels)
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_posted())
            group.create_task(self._sweep())

    async def drain(self) -> None:
        """Send what this process has posted; what fails stays in the outbox."""
        parcels, self._ready = self._ready, []
        if parcels:
            await self._send(parcels)

    async def _send_posted(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.drain()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_SECONDS)
            try:
                async with self._db.transaction() as tx:
                    due = await outbox.take_due(tx, 200, TAKEN_FOR_SECONDS)
            except (*GONE, *RETRIED) as error:
                log.warning("outbox not swept", error=repr(error))
                continue
            if due:
                log.info("outbox swept", parcels=len(due))
                await self._send(due)

    async def _send(self, parcels: list[Parcel]) -> None:
        faultpoint.reach("relay.before_send")
        topics: dict[str, list[Parcel]] = {}
        for parcel in parcels:
            topics.setdefault(parcel.topic, []).append(parcel)
        results = await asyncio.gather(
            *(self._send_topic(topic, several) for topic, several in topics.items())
        )
        faultpoint.reach("relay.after_send")
        sent = [outbox_id for ids in results for outbox_id in ids]
        if not sent:
            return
        try:
            async with self._db.transaction() as tx:
                await outbox.delete(tx, sent)
        except (*GONE, *RETRIED) as error:
            log.warning("sent messages not yet forgotten", error=repr(error))
        faultpoint.reach("relay.after_delete")

    async def _send_topic(self, topic: str, parcels: list[Parcel]) -> list[int]:
        keys = [key for parcel in parcels for key in parcel.keys]
        payloads = [payload for parcel in parcels for payload in parcel.payloads]
        try:
            await self._kafka.send_many(topic, keys, payloads)
        except Unavailable as error:
            log.warning("not sent, stays in the outbox", topic=topic, messages=len(keys), error=str(error))
            return []
        self.sent += len(keys)
        return [parcel.outbox_id for parcel in parcels]
