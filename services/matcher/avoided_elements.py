"""Reads from the database which computing elements are to be avoided; the queue index then gives pilots there canaries only.

A canary is a small test job of the system's own.
"""

import asyncio

import structlog

from wms.db import ce_state
from wms.db.database import Database
from wms.ids import CeId
from wms.queue_index.index import QueueIndex

log = structlog.get_logger()


class AvoidedElements:
    """Copies the set of avoided computing elements from the database into a matcher's queue index."""

    def __init__(self, db: Database, index: QueueIndex) -> None:
        self._db = db
        self._index = index
        self._avoided: dict[CeId, str] = {}
        self._reading = asyncio.Lock()
        """Held while the set is read, so that an older reading never replaces a newer one."""

    async def refresh(self) -> None:
        """Read which elements are avoided and set them in the index, from its next draw on."""
        async with self._reading:
            async with self._db.transaction() as tx:
                avoided = await ce_state.avoided(tx)
            if avoided != self._avoided:
                self._avoided = avoided
                self._index.avoid(avoided)
                log.info(
                    "elements avoided",
                    elements={"/".join(filter(None, at)): why for at, why in avoided.items()},
                )
