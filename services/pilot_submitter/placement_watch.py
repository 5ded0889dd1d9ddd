"""Watches placements: each fails if its pilot ends or is too late before the job starts, and leaves no pilot behind."""

from collections.abc import Sequence

import structlog

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints
from services.pilot_submitter.element_calls import ElementCalls
from services.pilot_submitter.placement_execution import SOURCE
from wms import faultpoint
from wms.db import pilot, placement
from wms.db.database import Database
from wms.db.pilot import Followed, UnboundPilot
from wms.ids import PilotId

log = structlog.get_logger()

AT_ONCE = 500
OVER_SECONDS = 30.0
"""How long a pilot that was sent for one job has to end by itself after the job's end, in seconds. After that it is cancelled."""


class PlacementWatch:
    """Fails placements whose jobs can no longer start, and cancels pilots whose placement is over. Any number of instances may run."""

    def __init__(
        self,
        db: Database,
        endpoints: CeEndpoints,
        *,
        over_seconds: float = OVER_SECONDS,
        calls: ElementCalls | None = None,
    ) -> None:
        """Build the watch; pilots are cancelled `over_seconds` after their jobs ended.

        `calls` are how it calls elements; None: each round waits for the slowest element.
        """
        self._db = db
        self._endpoints = endpoints
        self._over_seconds = over_seconds
        self._calls = calls or ElementCalls()

    async def look(self) -> bool:
        """Store which placements' pilots have arrived, and fail placements whose jobs cannot start any more.

        Return whether there may be more.
        """
        async with self._db.transaction() as tx:
            await placement.arrived(tx)
        # In a transaction of its own: it locks jobs first, as all others do.
        async with self._db.transaction() as tx:
            doomed = await placement.doomed(tx, AT_ONCE)
            failed = await placement.fail(tx, doomed, SOURCE)
        if failed:
            faultpoint.reach("placing.after_failure")
            log.info(
                "placements failed", placements=[(each.job_id, each.attempt, each.code) for each in failed]
            )
        return len(doomed) == AT_ONCE and bool(failed)

    async def clear(self) -> bool:
        """Cancel pilots whose placements ended some time ago, at their elements, and store that the pilots have ended.

        Return whether there may be more.
        """
        async with self._db.transaction() as tx:
            found = await pilot.unbound(tx, since=self._over_seconds, limit=AT_ONCE)
        by_endpoint = {
            endpoint: some
            for endpoint, some in self._endpoints.behind(found).items()
            if endpoint.reachable and not self._calls.is_busy(endpoint)
        }
        await self._calls.run(
            {endpoint: self._cancel(endpoint, some) for endpoint, some in by_endpoint.items()}
        )
        return len(found) == AT_ONCE and bool(by_endpoint)

    async def _cancel(self, endpoint: CeEndpoint, pilots: Sequence[UnboundPilot]) -> None:
        """Cancel pilots at their element , and store that they have ended. Without an answer nothing is stored.

        `stray_pilots` repeats a cancellation that the batch system lost.
        """
        names = [each.pilot_id for each in pilots]
        if await endpoint.ask(_done(endpoint, names)) is None:
            return
        ended = [Followed(pilot_id=each, state="Done", reason="its placement is over") for each in names]
        async with self._db.transaction() as tx:
            await pilot.update(tx, ended)
        log.info("pilots cancelled, their placements are over", pilots=names)


async def _done(endpoint: CeEndpoint, names: Sequence[PilotId]) -> bool:
    await endpoint.dispatcher.cancel(names)
    return True
