"""What the broker does after jobs have ended: it scores predictions, closes records, and deletes old data."""

from collections.abc import Collection

from wms.db import agreement, job_record, prediction, transfer
from wms.db.database import Database, Transaction
from wms.messages.agreements import OFFERS_TOPIC, Cancel

BATCH = 500
DAY_SECONDS = 86_400.0


class RecordUpkeep:
    """Regular work after jobs were placed: scores predictions, closes records and deletes old data.

    Any number of instances may do it at the same time. Data is kept for `kept_days`.
    """

    def __init__(self, db: Database, kept_days: float) -> None:
        self._db = db
        self._kept_seconds = kept_days * DAY_SECONDS

    async def score(self) -> bool:
        """Store the measured times beside the predicted ones for jobs that have ended; return whether there may be more."""
        async with self._db.transaction() as tx:
            return await prediction.score(tx, BATCH) >= BATCH

    async def close(self) -> bool:
        """Close the records of placed jobs that have ended or are held; return whether there may be more.

        The agreements of held jobs are cancelled, since a held job is placed anew when it is released.
        """
        async with self._db.transaction() as tx:
            over = await job_record.over(tx, BATCH)
            await _cancel(tx, [name for each in over if each.is_held for name in each.asked])
            await job_record.close(tx, [each.job_id for each in over])
        return len(over) == BATCH

    async def forget(self) -> bool:
        """Delete predictions and measured transfers that are older than `kept_days`; return whether there may be more."""
        async with self._db.transaction() as tx:
            gone = await prediction.forget(tx, self._kept_seconds, BATCH)
            return max(gone, await transfer.forget(tx, self._kept_seconds, BATCH)) == BATCH


async def _cancel(tx: Transaction, names: Collection[str]) -> None:
    if names:
        for each in (await agreement.read(tx, names)).values():
            tx.send(OFFERS_TOPIC, each.site, Cancel(agreement_id=each.agreement_id, site=each.site))
