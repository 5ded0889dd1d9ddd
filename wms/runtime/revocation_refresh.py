"""Keeps a service's revocations as the database says: a number is compared each second, and all are read when it has changed."""

import time
from typing import Final

from wms.auth.revocations import Revocations
from wms.db import revocation
from wms.db.database import Database

LOOK_SECONDS: Final = 1.0
ANEW_SECONDS: Final = 60.0
"""Seconds after which all are read anyway, as some end by themselves."""


class RevocationRefresh:
    """Reads revocations when they have changed. While the database is away those of before hold."""

    def __init__(self, db: Database, revocations: Revocations) -> None:
        self._db = db
        self._revocations = revocations
        self._revision = -1
        self._read_at = 0.0

    async def look(self) -> None:
        """Compare the number of changes, and read all revocations if it is another, or if it is time."""
        async with self._db.transaction() as tx:
            revision = await revocation.revision(tx)
            if revision != self._revision or time.monotonic() - self._read_at > ANEW_SECONDS:
                self._revocations.replace(await revocation.in_force(tx))
                self._revision, self._read_at = revision, time.monotonic()
