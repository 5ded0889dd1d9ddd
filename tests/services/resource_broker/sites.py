"""Sites that reserve, as far as the broker sees them: they decide on offers as a test says."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tests.services.brokers import BrokerWorld
from tests.services.world import World
from wms.db import job_record
from wms.ids import JobId
from wms.messages.agreements import OFFERS_TOPIC, Confirm, Reserve, ToSite

_TO_SITE: msgspec.json.Decoder[Any] = msgspec.json.Decoder(ToSite)


class Sites:
    """Sites with one element each. `free_in` are the seconds from now at which each starts its next job."""

    def __init__(self, brokers: BrokerWorld, **free_in: float) -> None:
        self._brokers = brokers
        self._world = brokers.world
        self.free_in = free_in
        self.confirming = True

    async def advertise(self) -> None:
        for site in self.free_in:
            await self._brokers.advertise(site)
            await self._brokers.reserves(site)

    async def decide(self, *job_ids: JobId) -> None:
        """Decide on all that was asked, and tell the broker of the decisions for these jobs."""
        for told in map(_TO_SITE.decode, self._world.take(OFFERS_TOPIC)):
            if isinstance(told, Reserve):
                await self._reserve(told)
            elif isinstance(told, Confirm):
                await self._moved(told.agreement_id, "Confirmed" if self.confirming else "Expired")
            else:
                await self._moved(told.agreement_id, "Cancelled")
        async with self._world.db.transaction() as tx:
            await job_record.decided(tx, job_ids)

    async def _reserve(self, told: Reserve) -> None:
        wait = self.free_in[told.site]
        await self._world.sql(
            'insert into agreement (agreement_id, job_id, vo, owner, "group", site, ce, cpus, duration_seconds,'
            " flexible, expires_in_seconds, state, start_at, ends_at, reservation, expires_at) values ($1, $2, $3,"
            " $4, $5, $6, $7, 1, 60, $9, 60, 'Temporary', greatest($8, now() + make_interval(secs => $10)),"
            " greatest($8, now() + make_interval(secs => $10)) + interval '60 s', 'r-' || $1, now() + interval '60 s')",
            *(told.agreement_id, told.job_id, told.vo, told.owner, told.group, told.site, told.ce),
            *(told.earliest_start, told.flexible, wait),
        )

    async def _moved(self, agreement_id: str, state: str) -> None:
        await self._world.sql("update agreement set state = $2 where agreement_id = $1", agreement_id, state)

    async def states(self) -> Mapping[str, int]:
        """Return the numbers of agreements by state."""
        rows = await self._world.sql("select state, count(*) as n from agreement group by state")
        return {row["state"]: row["n"] for row in rows}

    async def held(self) -> int:
        """Return the number of living agreements."""
        found = await self.states()
        return sum(found.get(state, 0) for state in ("Requested", "Temporary", "Confirmed"))


async def submitted(world: World, count: int = 2, **wishes: Any) -> list[JobId]:
    """Submit jobs that start together."""
    return await world.swept(count, coallocate=True, preferences=wishes, wall_time=60)


async def settled(brokers: BrokerWorld, sites: Sites, *job_ids: JobId, phase: str = "Placed") -> None:
    """Let broker and sites go on until the leader's record has a phase."""
    for _ in range(12):
        await brokers.step()
        if (await brokers.record(job_ids[0])).phase == phase:
            return
        await sites.decide(*job_ids)
    raise AssertionError(await brokers.record(job_ids[0]))


async def states(world: World, ids: list[JobId]) -> list[str]:
    """Return the states of jobs."""
    return [await world.state(each) for each in ids]
