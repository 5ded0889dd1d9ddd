"""How late the renewals of leases come: what is left of a lease whenever somebody looks, as the database's clock has it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import asyncpg

from tests.chaos.run import LEASE_SECONDS
from tests.hostile.target import Target
from wms.lease import renewal_seconds, stop_at

LOOK_SECONDS = 0.1
LEFT = """select extract(epoch from l.expires_at - clock_timestamp())::float8 as seconds
          from lease l join job j using (job_id) where j.owner = $1 and j.state = 'Running'"""

STOP_SECONDS = 1.0
"""What an agent keeps back to stop a payload."""
MARGIN_SECONDS = stop_at(0.0, LEASE_SECONDS, STOP_SECONDS) - renewal_seconds(LEASE_SECONDS)
"""So late a renewal may come at most: then the agent stops the payload."""


class Renewals:
    """Looks at the leases of running jobs of one owner, and remembers how late the latest renewal came."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self.looks = 0
        self.least_left = LEASE_SECONDS

    @property
    def latest_seconds(self) -> float:
        """How long after it was due the latest renewal was there."""
        return max(0.0, LEASE_SECONDS - renewal_seconds(LEASE_SECONDS) - self.least_left)

    async def watch(self, connection: asyncpg.Connection) -> None:
        """Look until cancelled."""
        while True:
            rows = await connection.fetch(LEFT, self._owner)
            self.least_left = min([self.least_left, *(row["seconds"] for row in rows)])
            self.looks += bool(rows)
            await asyncio.sleep(LOOK_SECONDS)


@contextlib.asynccontextmanager
async def renewals(target: Target, owner: str) -> AsyncIterator[Renewals]:
    """Watch an owner's leases for as long as the body takes."""
    connection = await asyncpg.connect(target.database)
    found = Renewals(owner)
    watching = asyncio.create_task(found.watch(connection))
    try:
        yield found
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await connection.close(timeout=5)
