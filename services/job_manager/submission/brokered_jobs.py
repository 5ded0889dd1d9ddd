"""New jobs that the resource broker is to place. Each gets its own row and task queue, and is sent to the broker.

This happens in the transaction of their submission, before a pilot can be given one.
"""

from collections.abc import Iterable, Mapping, Sequence

from services.job_manager.submission.store import NewSubmission, Ranges
from wms.auth.policy import Scope
from wms.db import block, brokering, job, task_queue
from wms.db.block import JobFilter
from wms.db.database import Transaction
from wms.db.job import JobMove
from wms.errors import Rejected
from wms.ids import CommandId, JobId, joined
from wms.job.job import Job, path
from wms.job.reasons import Code, Reason
from wms.job.state import Event, State
from wms.jobdesc.description import is_brokered
from wms.jobdesc.kind import PartlyRead
from wms.matching.binding import bound
from wms.matching.grouping import Requirements, key

BROKERED_LIMIT = 2_000
"""The most jobs of one submission that the resource broker may place. Each has its own task queue."""

_EVERYBODY = Scope(reach="all")
_SOURCE = "job_manager"


def check(jobs: Iterable[PartlyRead]) -> None:
    """Raise Rejected if a submission has more jobs for the resource broker than BROKERED_LIMIT. `jobs` are its descriptions."""
    count = sum(each.kind.jobs for each in jobs if is_brokered(each.kind.description))
    if count > BROKERED_LIMIT:
        raise Rejected(
            "TOO_MANY_BROKERED",
            f"{count:,} jobs are to be placed by the broker one by one, more than {BROKERED_LIMIT:,}",
            "submit them in several parts; or leave their preferences out, so that pilots take them",
        )


async def send(
    tx: Transaction, orders: Mapping[CommandId, NewSubmission], ids: Mapping[CommandId, Ranges]
) -> None:
    """Tell the resource broker about the new jobs of this transaction that it is to place. Held jobs follow after their release.

    `orders` are the submissions, and `ids` the ranges of their job ids, by command id.
    """
    mine = {
        job_id: required
        for name, order in orders.items()
        for job_id, required in _brokered(order, ids[name][0][0])
    }
    if not mine:
        return
    await _give_rows(tx, sorted(mine))
    await _bind(tx, mine)
    found = await job.lock(tx, mine)
    await job.move(tx, [_checked(each) for each in found.values() if each.state is State.WAITING], _SOURCE)


def _brokered(order: NewSubmission, first: int) -> Iterable[tuple[JobId, Requirements]]:
    for read in order.prepared.jobs:
        if is_brokered(read.kind.description):
            required = order.prepared.required[read.kind]
            yield from ((JobId(n), required) for n in range(first, first + read.kind.jobs))
        first += read.kind.jobs


async def _give_rows(tx: Transaction, ids: Sequence[JobId]) -> None:
    """Give rows of their own to jobs of arrays, since the broker places each by itself."""
    parts = await block.lock_selected(
        tx, JobFilter(ranges=joined((each, each) for each in ids), scope=_EVERYBODY)
    )
    await block.give_rows(tx, parts)


async def _bind(tx: Transaction, required: Mapping[JobId, Requirements]) -> None:
    alone = {job_id: bound(each, job_id) for job_id, each in required.items()}
    keys = {job_id: key(each) for job_id, each in alone.items()}
    queues = await task_queue.find_or_make(tx, {keys[job_id]: each for job_id, each in alone.items()})
    await brokering.bind(tx, {job_id: queues[keys[job_id]] for job_id in alone})


def _checked(found: Job) -> JobMove:
    steps = path(found.state, (Event.CHECK, Reason(Code.TO_BROKER)))
    return JobMove(job=found, steps=steps, attempts=found.attempts, unstarted=found.unstarted)
