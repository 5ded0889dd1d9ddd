"""A user whose jobs the broker places in reservations while everything is killed: each ends, and nothing stays reserved for it."""

import asyncio
import contextlib
import itertools

import asyncpg

from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import Client, JobDescription, select
from wms.errors import Unavailable
from wms.jobdesc.preferences import JobPreferences

OWNER = "brokered"
PATIENCE = 120.0
OPEN_JOBS = 3
"""So many jobs are under way at a time: fewer than one user may have reservations."""
JOB = JobDescription(
    executable="/bin/true", cpu_time=30, max_attempts=50, preferences=JobPreferences(reservation=True)
)
LIVE, HELD = select(state="live"), select(state="held")
STATES = "select job_id, state from job where owner = $1"
RESERVED = (
    "select count(*) from agreement where owner = $1 and state in ('Requested', 'Temporary', 'Confirmed')"
)
COUNTS = "select state, count(*) from agreement where owner = $1 group by 1 order by 1"


class BrokeredUser:
    """Submits jobs that want reservations, and releases those that are Held since a broker died too often at their step."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._settings = target.settings(OWNER)
        self.taken: list[int] = []
        self.released = 0
        self.agreements: dict[str, int] = {}
        self.faults: list[str] = []

    async def run(self) -> None:
        """Go on until cancelled."""
        numbers = itertools.count()
        number = next(numbers)
        async with self._client() as client:
            while True:
                # Each call waits through an outage; one that does not end in time is made again, under the same id.
                with contextlib.suppress(Unavailable):
                    await self._release(client)
                    if sum((await client.counts(LIVE)).values()) < OPEN_JOBS:
                        self.taken += (await client.submit(JOB, id=f"brokered-{number}")).job_ids()
                        number = next(numbers)
                await asyncio.sleep(0.2)

    async def settle(self) -> None:
        """Wait until all jobs have ended and nothing is reserved for them; that they do not, or that something is, is a fault."""
        async with self._client() as client:
            try:
                await eventually(lambda: self._all_ended(client), PATIENCE)
                await eventually(self._nothing_reserved, PATIENCE)
            except (AssertionError, Unavailable) as fault:
                self.faults.append(f"of brokered jobs there were left: {await self._left(client)} ({fault})")

    async def check(self) -> list[str]:
        """Return what did not hold: each acknowledged job is there once, and Done."""
        connection = await asyncpg.connect(self._target.database)
        try:
            there = {row["job_id"]: row["state"] for row in await connection.fetch(STATES, OWNER)}
            self.agreements = {row["state"]: row["count"] for row in await connection.fetch(COUNTS, OWNER)}
        finally:
            await connection.close()
        if len(set(self.taken)) != len(self.taken) or not set(self.taken) <= there.keys():
            self.faults.append(f"{len(self.taken)} brokered jobs were taken, {len(there)} are there")
        wrong = {each: there.get(each) for each in self.taken if there.get(each) != "Done"}
        if wrong:
            self.faults.append(f"brokered jobs that are not Done: {wrong}")
        return self.faults

    def text(self) -> str:
        """Return it for people."""
        return f"brokered: {len(self.taken):,} jobs taken, {self.released} released; agreements: {self.agreements}"

    def _client(self) -> contextlib.AbstractAsyncContextManager[Client]:
        return Client.connect(self._settings, timeout=PATIENCE)

    async def _release(self, client: Client) -> None:
        if await client.counts(HELD):
            self.released += (await client.release(HELD)).changed

    async def _all_ended(self, client: Client) -> bool:
        await self._release(client)
        return not await client.counts(LIVE)

    async def _nothing_reserved(self) -> bool:
        connection = await asyncpg.connect(self._target.database)
        try:
            return bool(await connection.fetchval(RESERVED, OWNER) == 0)
        finally:
            await connection.close()

    async def _left(self, client: Client) -> dict[str, int]:
        with contextlib.suppress(Unavailable):
            return dict(await client.counts(LIVE))
        return {}
