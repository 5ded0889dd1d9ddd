"""Sums up the usage of attempts by the hours that are over, so that accounts of years are read fast and outlive the jobs."""

from wms.db import usage_hour
from wms.db.database import Database


class UsageRollup:
    """Sums up hours. Several processes may run it: one works at a time."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def look(self) -> bool:
        """Sum up the hours that are over, a day of them at most; return whether there may be more."""
        async with self._db.transaction() as tx:
            return await usage_hour.close(tx)
