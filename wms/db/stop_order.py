"""Orders to pilots to stop jobs that they hold: stored in the database, and sent to the pilots' sites."""

from collections.abc import Sequence

from wms.db import job
from wms.db.database import Transaction
from wms.ids import AttemptId
from wms.job.job import Job, Stop, StopOrder
from wms.messages.site_inbox import Kill, inbox


async def order(tx: Transaction, jobs: Sequence[Job], stop: Stop, by: StopOrder) -> None:
    """Ask the pilots that hold these locked jobs to stop them: store the order, and send a message to each pilot.

    `stop` says whether the jobs are killed, held or rescheduled, `by` who asked and why. Their state changes later: when the pilot reports
    it or the lease expires.
    """
    await job.ask_stop(tx, [each.job_id for each in jobs], stop, by)
    held: dict[tuple[str, str], list[Job]] = {}
    for each in jobs:
        if each.lease is not None and each.site is not None:
            held.setdefault((each.site, each.lease.pilot_id), []).append(each)
    for (site, pilot_id), several in held.items():
        tx.send(inbox(site), pilot_id, _kill(several))


def _kill(jobs: Sequence[Job]) -> Kill:
    lease = jobs[0].lease
    assert lease is not None
    return Kill(pilot_id=lease.pilot_id, jobs=tuple(AttemptId(each.job_id, each.epoch) for each in jobs))
