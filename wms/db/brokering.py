"""Jobs that the resource broker places, in the database.

The broker is asked to place each job that is in state Checking. When such a job changes its state later, its placement changes too.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from wms.broker.placement import PlacementState
from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId, TaskQueueId
from wms.job.job import Job, Steps
from wms.job.reasons import Code
from wms.job.state import AT_A_PILOT, Event, State
from wms.messages import broker

SQL = load(__file__)

Moved = tuple[Job, Steps]
"""A brokered job as it was before a change of state, and the steps of that change."""


class BrokerOrder(NamedTuple):
    """How often, and since when, the resource broker has been asked to place one job.

    `seq` is the number, in the job's history, of the change of state for which the broker is asked.
    """

    seq: int
    asked_at: datetime
    tries: int


async def bind(tx: Transaction, queues: Mapping[JobId, TaskQueueId]) -> None:
    """Mark jobs that this transaction inserts as brokered, and give each the task queue that it alone will wait in."""
    if queues:
        await tx.execute(SQL["bind"], list(queues), list(queues.values()))


async def follow(tx: Transaction, moved: Sequence[Moved]) -> None:
    """Update the placements of brokered jobs that changed state, and send the resource broker a message for those that are Checking now."""
    if not moved:
        return
    checking = [each for each in moved if _last(each) is State.CHECKING]
    if left := [
        job.job_id
        for job, steps in moved
        if job.state is State.CHECKING and steps[-1].state is not State.CHECKING
    ]:
        await tx.execute(SQL["answered"], left)
    if started := [job.job_id for job, steps in moved if any(step.event is Event.START for step in steps)]:
        await tx.execute(SQL["started"], started)
    if closed := [_closed(each) for each in moved if _is_over(each)]:
        await tx.execute(SQL["close"], *dense(closed))
    if checking:
        await _ask(tx, checking)


def _last(moved: Moved) -> State:
    return moved[1][-1].state


def _is_over(moved: Moved) -> bool:
    """Return whether the job, after its steps, is neither with its pilot nor waiting for it."""
    return _last(moved) is not State.WAITING and _last(moved) not in AT_A_PILOT


def _closed(moved: Moved) -> tuple[JobId, str, str, str]:
    """Return how the job's placement ends: job id, state, reason code and text. It has failed if a pilot had the job, else it is abandoned."""
    job, steps = moved
    # What the job left its pilot for is told by its first step, where others lead on to the broker.
    reason = steps[0 if _last(moved) is State.CHECKING else -1].reason
    state = PlacementState.FAILED if job.state in AT_A_PILOT else PlacementState.ABANDONED
    return job.job_id, state, reason.code, reason.text


async def _ask(tx: Transaction, checking: Sequence[Moved]) -> None:
    seqs = {job.job_id: job.event_seq + len(steps) for job, steps in checking}
    await tx.execute(SQL["ask"], list(seqs), list(seqs.values()))
    now = await tx.now()
    for job, steps in checking:
        if steps[-1].reason.code is not Code.PLACEMENT_FAILED:  # of which the broker is told by who saw it
            _tell(tx, (job.job_id, seqs[job.job_id], job.owner, job.owner_group, job.vo), now)


def _tell(tx: Transaction, asked: tuple[JobId, int, str, str, str], now: datetime) -> None:
    job_id, seq, owner, group, vo = asked
    message = broker.BrokerJob(job_id=job_id, seq=seq, at=now, owner=owner, owner_group=group, vo=vo)
    tx.send(broker.TOPIC, str(job_id), message)


async def ask_again(tx: Transaction, limit: int) -> int:
    """Ask the resource broker again to place up to `limit` jobs that it was asked for over 60 s ago. Return the number of jobs."""
    due = await tx.fetch(SQL["due"], limit)
    now = await tx.now()
    for row in due:
        _tell(tx, tuple(row), now)
    return len(due)


async def asked(tx: Transaction, job_id: JobId) -> BrokerOrder | None:
    """Return how often and since when the resource broker has been asked to place this job; None if it is not asked at present."""
    row = await tx.fetchrow(SQL["asked"], job_id)
    return None if row is None else BrokerOrder(*row)
