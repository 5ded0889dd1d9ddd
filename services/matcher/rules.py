"""Keeps the rules fresh that the index draws by: read from Postgres when told that they changed, and every few seconds."""

from collections.abc import Mapping

import structlog

from wms.db import share
from wms.db.database import Database
from wms.taskqueue.index import QueueIndex
from wms.taskqueue.shares import GroupShare, VoGroup

log = structlog.get_logger()


class Rules:
    """Shares, as they are in the database."""

    def __init__(self, db: Database, index: QueueIndex) -> None:
        self._db = db
        self._index = index
        self._shares: dict[VoGroup, GroupShare] = {}

    async def declare(self, shares: Mapping[str, Mapping[str, GroupShare]]) -> None:
        """Write down what this matcher's file says; of several that differ, the one that started last counts."""
        said = {(vo, group): each for vo, groups in shares.items() for group, each in groups.items()}
        async with self._db.transaction() as tx:
            await share.write_file(tx, said)
        await self.refresh()

    async def refresh(self) -> None:
        """Read what holds now."""
        async with self._db.transaction() as tx:
            said = await share.said(tx)
        shares = {group: each.share for group, each in said.items()}
        if shares != self._shares:
            self._shares = shares
            self._index.set_shares(shares)
            log.info("shares changed", groups=len(shares))
