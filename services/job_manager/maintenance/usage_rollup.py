"""Sums up the usage of attempts by hours that are over. So reports on years are fast, and outlive the jobs."""

from wms.db import usage_hour
from wms.db.database import Database


class UsageRollup:
    """A loop that sums up usage by hours. Several processes may run it: one works at a time."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def look(self) -> bool:
        """Sum up the hours that are over, a day of them at most. Return whether there may be more."""
        async with self._db.transaction() as tx:
            return await usage_hour.close(tx)
