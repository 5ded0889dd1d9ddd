"""Repeats orders to the resource broker that were not answered in time. So it does not matter how often a message is lost."""

import structlog

from wms.db import brokering
from wms.db.database import Database

log = structlog.get_logger()

BATCH = 500


class BrokerReminders:
    """A loop that repeats overdue orders to the resource broker. Several processes may run it."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def look(self) -> bool:
        """Send again the orders to the resource broker whose answers are overdue. Return whether there may be more."""
        async with self._db.transaction() as tx:
            again = await brokering.ask_again(tx, BATCH)
        if again:
            log.info("broker asked again", jobs=again)
        return again == BATCH
