"""What is done when jobs have ended: predictions are scored, agreements let go, old predictions deleted."""

from wms.db import job_record, prediction
from wms.db.database import Database

BATCH = 500
DAY_SECONDS = 86_400.0


class Upkeep:
    """Any number of instances may work; each takes its own batch."""

    def __init__(self, db: Database, kept_days: float) -> None:
        self._db = db
        self._kept_seconds = kept_days * DAY_SECONDS

    async def score(self) -> bool:
        """Compare predictions with what happened; return whether there may be more."""
        async with self._db.transaction() as tx:
            return await prediction.score(tx, BATCH) >= BATCH

    async def close(self) -> bool:
        """Close the records of ended jobs, whose agreements end with them; return whether there may be more."""
        async with self._db.transaction() as tx:
            ended = await job_record.over(tx, BATCH)
            await job_record.close(tx, ended)
        return len(ended) == BATCH

    async def forget(self) -> bool:
        """Delete old predictions; return whether there may be more."""
        async with self._db.transaction() as tx:
            return await prediction.forget(tx, self._kept_seconds, BATCH) == BATCH
