"""Handles `wms.broker.jobs`: records jobs that the resource broker is to place, for the first time or after a failed placement.

A message only makes it faster: a loop also finds jobs whose message was lost.
"""

from collections.abc import Callable

from wms.bus.consumer import Delivery
from wms.db import job_record
from wms.db.database import Database, Transaction
from wms.messages.agreements import AgreementDecided
from wms.messages.broker import BrokerJob, PlacementFailed, ToBroker

BATCH = 500


class IncomingJobs:
    """Creates the broker's records of jobs to be placed. `wake` is called to start the broker's next round at once."""

    def __init__(self, db: Database, wake: Callable[[], None]) -> None:
        self._db = db
        self._wake = wake
        self.taken = 0
        """How many messages on jobs to be placed this instance has handled since it started."""

    async def handle(self, tx: Transaction, batch: list[Delivery[ToBroker]]) -> None:
        """Create or restart the records of jobs to be placed. Of several messages on one job, the newest change of state counts.

        The records are written in the given transaction, and the broker's next round is started after its commit.
        """
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
        tx.on_commit(self._wake)

    async def decided(self, tx: Transaction, batch: list[Delivery[AgreementDecided]]) -> None:
        """Handle decisions of sites on agreements: the job's next step is due at once, unless it waits for other sites' decisions."""
        await job_record.decided(tx, {delivery.message.job_id for delivery in batch})
        tx.on_commit(self._wake)

    async def look(self) -> bool:
        """Create records of up to `BATCH` jobs whose message was lost, in a transaction of its own.

        Return whether there may be more.
        """
        async with self._db.transaction() as tx:
            lost = await job_record.unknown(tx, BATCH)
            await job_record.adopt(tx, lost)
        if lost:
            self._wake()
        return len(lost) == BATCH
