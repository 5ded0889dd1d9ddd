"""What happens to co-allocated jobs when one of them cannot start: the others must not run without it.

Placements of jobs that still wait for their reservation fail, so that the broker places the group anew. Jobs that already run
are stopped and held; the others wait at the broker until these are released. If one ends before it is stopped, the broker's
next step fails the others.
"""

from collections.abc import Sequence

from wms.broker.placement import PlacementFault
from wms.db import coallocation, job, placement, stop_order
from wms.db.coallocation import TornGroup
from wms.db.database import Database, Transaction
from wms.db.placement import Placement, PlacementFailure
from wms.ids import JobId
from wms.job.job import Job, StopOrder
from wms.job.state import AT_A_PILOT, State

SOURCE = "resource_broker"
BATCH = 50


class BrokenGroups:
    """Takes back placed jobs when another job of their group cannot start. Any number of instances may do it."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def gather(self) -> bool:
        """Fail the placements, or stop the runs, of jobs whose group can no longer start together.

        Return whether there may be more such groups.
        """
        async with self._db.transaction() as tx:
            groups = await coallocation.torn(tx, BATCH)
            if groups:
                await self._gather(tx, groups)
        return len(groups) == BATCH

    async def _gather(self, tx: Transaction, groups: Sequence[TornGroup]) -> None:
        ids = [JobId(job_id) for each in groups for job_id in each.job_ids]
        jobs = await job.lock(tx, ids)
        open_ = await placement.open_of(tx, ids)
        await placement.fail(tx, [one for each in groups for one in _failures(each, jobs, open_)], SOURCE)
        for each in groups:
            running = [jobs[JobId(one)] for one in each.job_ids if _runs(jobs.get(JobId(one)))]
            if running:
                await stop_order.order(tx, running, "hold", StopOrder(SOURCE, _why(each)))


def _runs(found: Job | None) -> bool:
    return found is not None and found.state in AT_A_PILOT and not found.stop_requested


def _failures(
    group: TornGroup, jobs: dict[JobId, Job], open_: dict[JobId, Placement]
) -> list[PlacementFailure]:
    """Return the failures of those placements of a group that are still open, as their jobs have not started.

    `jobs` are the locked jobs, and `open_` their open placements, both by id.
    """
    waiting = [open_[each] for one in group.job_ids if (each := JobId(one)) in open_]
    return [
        PlacementFailure(
            job_id=each.job_id,
            attempt=each.attempt,
            site=each.site,
            ce=each.ce,
            code=PlacementFault.NOT_TOGETHER,
            text=_why(group),
        )
        for each in waiting
        if (found := jobs.get(each.job_id)) and found.state is State.WAITING
    ]


def _why(group: TornGroup) -> str:
    return f"it was to start together with job {group.away}, which is {group.away_state}"
