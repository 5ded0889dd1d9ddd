"""Orders to the broker that it has not answered in time: it is asked again, however often its message or it itself was lost."""

import structlog

from wms.db import brokering
from wms.db.database import Database

log = structlog.get_logger()

BATCH = 500


class BrokerOrders:
    """Asks the broker again; any number of instances may."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def look(self) -> bool:
        """Ask again for jobs whose orders are due; return whether there may be more."""
        async with self._db.transaction() as tx:
            again = await brokering.ask_again(tx, BATCH)
        if again:
            log.info("broker asked again", jobs=again)
        return again == BATCH
