"""Handles `wms.broker.jobs`: begins to broker jobs, and begins anew for those whose placements failed.

The messages are hints. A loop adopts what the database knows and no message told.
"""

from collections.abc import Callable

from wms.bus.consumer import Delivery
from wms.db import job_record
from wms.db.database import Database, Transaction
from wms.messages.agreements import AgreementDecided
from wms.messages.broker import BrokerJob, PlacementFailed, ToBroker

BATCH = 500


class Orders:
    """Adopts jobs; `wake` lets the next steps begin at once."""

    def __init__(self, db: Database, wake: Callable[[], None]) -> None:
        self._db = db
        self._wake = wake
        self.taken = 0
        """The number of orders that were handled."""

    async def handle(self, tx: Transaction, batch: list[Delivery[ToBroker]]) -> None:
        """Take a batch of orders; the last one of each job counts."""
        newest: dict[int, BrokerJob | PlacementFailed] = {}
        for delivery in batch:
            told = delivery.message
            if told.job_id not in newest or newest[told.job_id].seq <= told.seq:
                newest[told.job_id] = told
        orders = {each.job_id: each.seq for each in newest.values()}
        # What failed before counts no more for a job that its user sent to the broker again.
        fresh = [each.job_id for each in newest.values() if isinstance(each, BrokerJob)]
        await job_record.adopt(tx, orders, fresh)
        self.taken += len(batch)
        self._wake()

    async def decided(self, tx: Transaction, batch: list[Delivery[AgreementDecided]]) -> None:
        """Take the decisions of sites: jobs that wait for none any more go on at once."""
        await job_record.decided(tx, {delivery.message.job_id for delivery in batch})
        self._wake()

    async def look(self) -> bool:
        """Adopt jobs whose orders never came; return whether there may be more."""
        async with self._db.transaction() as tx:
            lost = await job_record.unknown(tx, BATCH)
            await job_record.adopt(tx, lost)
        if lost:
            self._wake()
        return len(lost) == BATCH
