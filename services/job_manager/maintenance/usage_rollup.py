"""Adds up the usage of attempts by full hours. Reports over years then need no attempts, so they are fast and remain after jobs are deleted."""

from wms.db import usage_hour
from wms.db.database import Database


class UsageRollup:
    """A loop that adds up usage by hours. Several processes may run it: one works at a time."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def look(self) -> bool:
        """Add up the usage of past hours that are not added up yet, at most 24 of them. Return whether there may be more."""
        async with self._db.transaction() as tx:
            return await usage_hour.close(tx)
