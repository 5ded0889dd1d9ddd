"""Keeps a service's copy of the revocations up to date. It reads a revision number each second, and all revocations when that has changed."""

import time
from typing import Final

from wms.auth.revocations import Revocations
from wms.db import revocation
from wms.db.database import Database

LOOK_SECONDS: Final = 1.0
ANEW_SECONDS: Final = 60.0
"""Seconds after which all revocations are read even if the revision is unchanged, because some expire."""


class RevocationRefresh:
    """Reads the revocations from the database when they have changed. While the database is unavailable, those read last stay in force."""

    def __init__(self, db: Database, revocations: Revocations) -> None:
        self._db = db
        self._revocations = revocations
        self._revision = -1
        self._read_at = 0.0

    async def look(self) -> None:
        """Read the revision number. If it has changed, or after `ANEW_SECONDS`, read all revocations. Raise the errors of the database."""
        async with self._db.transaction() as tx:
            revision = await revocation.revision(tx)
            if revision != self._revision or time.monotonic() - self._read_at > ANEW_SECONDS:
                self._revocations.replace(await revocation.in_force(tx))
                self._revision, self._read_at = revision, time.monotonic()
