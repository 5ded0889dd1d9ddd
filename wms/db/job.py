"""Jobs in the database: inserted in batches, locked, read, and moved from state to state."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any

import asyncpg
import msgspec

from wms.db import brokering, task_queue
from wms.db.columns import sparse
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import Identity, JobId, PilotId, TaskQueueId
from wms.job.job import Job, Step, Steps, Stop, StopOrder, to_broker
from wms.job.reasons import Code
from wms.job.state import AT_A_PILOT, Event, State
from wms.lease import Lease
from wms.messages import events

SQL = load(__file__)

_JOB_ID = attrgetter("job_id")
_STATES = {str(state): state for state in State}
"""States by name. Every job that is read is looked up here, as the enumeration's own lookup is far slower."""


class NewJob(msgspec.Struct, frozen=True):
    """A job to be inserted by `insert`, with the task queue that it waits in."""

    job_id: JobId
    """The reserved id of the job. Its description is stored under the same id."""
    tq_id: TaskQueueId
    name: str
    user_priority: float
    max_attempts: int
    job_group: str = ""


class JobMove(msgspec.Struct, frozen=True, kw_only=True):
    """A locked job and the steps of its change of state, to be stored by `move`."""

    job: Job
    steps: Steps
    attempts: int
    """The new number of attempts that count against the job's limit."""
    unstarted: int = 0
    end_told: bool = False
    """Whether the row of the ended attempt records the last step, so that the job's history needs no entry for it."""


async def reserve(tx: Transaction, count: int) -> JobId:
    """Reserve `count` consecutive job ids and return the first."""
    return JobId(await tx.fetchval(SQL["reserve_ids"], count))


async def describe(tx: Transaction, firsts: Sequence[JobId], descriptions: Sequence[str]) -> None:
    """Store job descriptions (JSON). Each gets the id of the first job that it describes, at the same position in `firsts`."""
    await tx.copy("description", ("description_id", "body"), list(zip(firsts, descriptions, strict=True)))


_BORN = (
    "job_id", "description_id", "tq_id", "owner", "owner_group", "vo", "name", "user_priority", "max_attempts",
    "state", "event_seq", "reason", "job_group",
)  # fmt: skip


async def insert(tx: Transaction, identity: Identity, jobs: Sequence[NewJob]) -> None:
    """Insert jobs of one owner in state Waiting. Their first two history entries, Received and Waiting, need no rows of their own."""
    rows = [
        (each.job_id, each.job_id, each.tq_id, *identity, each.name, each.user_priority, each.max_attempts,
         State.WAITING, 2, Code.QUEUED, each.job_group)
        for each in jobs
    ]  # fmt: skip
    if rows:
        await tx.copy("job", _BORN, rows)


async def tell_queued(tx: Transaction, first: JobId, count: int, identity: Identity) -> None:
    """Send the event that `count` jobs with consecutive ids from `first` on were inserted."""
    fact = events.JobsQueued(
        first=first,
        count=count,
        at=await tx.now(),
        owner=identity.owner,
        owner_group=identity.group,
        vo=identity.vo,
    )
    tx.send(events.TOPIC, str(first), fact)


async def lock(tx: Transaction, job_ids: Iterable[JobId]) -> dict[JobId, Job]:
    """Lock the rows of these jobs until the transaction ends, and return the jobs by id. Unknown ids are absent.

    Rows are locked in the order of their ids, so that transactions cannot deadlock.
    """
    return await _facts(tx, SQL["lock"], sorted(set(job_ids)))


async def lock_held(
    tx: Transaction, job_ids: Iterable[JobId], pilot_ids: Collection[PilotId]
) -> dict[JobId, Job]:
    """Do as `lock`, but lock and return those jobs alone that one of these pilots holds."""
    return await _facts(tx, SQL["lock_held"], sorted(set(job_ids)), list(pilot_ids))


async def read(tx: Transaction, job_ids: Iterable[JobId]) -> dict[JobId, Job]:
    """Return these jobs by id, without locking them. Unknown ids are absent. Decisions need `lock` instead."""
    return await _facts(tx, SQL["read"], sorted(set(job_ids)))


async def _facts(tx: Transaction, query: str, ids: list[JobId], *more: object) -> dict[JobId, Job]:
    rows = await tx.fetch(query, ids, *more)
    leases = {row[0]: _lease(row) for row in await tx.fetch(SQL["leases"], ids)}
    stopped = [row["job_id"] for row in rows if row["stop_requested"]]
    orders = await _stop_orders(tx, stopped) if stopped else {}
    return {row[0]: _job(row, leases.get(row[0]), orders.get(row[0])) for row in rows}


async def _stop_orders(tx: Transaction, ids: list[JobId]) -> dict[JobId, StopOrder]:
    rows = await tx.fetch(SQL["stop_orders"], ids)
    return {row["job_id"]: StopOrder(row["source"], row["reason"]) for row in rows}


def _lease(row: asyncpg.Record) -> Lease:
    job_id, epoch, pilot_id, phase, expires_at, counted, granted_at = row
    return Lease(
        job_id=job_id, epoch=epoch, pilot_id=pilot_id, phase=phase, expires_at=expires_at, counted=counted,
        granted_at=granted_at,
    )  # fmt: skip


def _job(row: asyncpg.Record, lease: Lease | None, stop_order: StopOrder | None) -> Job:
    (
        job_id, state, epoch, event_seq, attempts, max_attempts, unstarted, stop_requested, tq_id, user_priority,
        owner, owner_group, vo, site, pilot_id, brokered,
    ) = row  # fmt: skip
    return Job(
        job_id=job_id, state=_STATES[state], epoch=epoch, event_seq=event_seq, attempts=attempts,
        max_attempts=max_attempts, unstarted=unstarted, stop_requested=stop_requested, tq_id=tq_id, user_priority=user_priority,
        owner=owner, owner_group=owner_group, vo=vo, site=site, pilot_id=pilot_id, lease=lease,
        stop_order=stop_order, brokered=brokered,
    )  # fmt: skip


async def move(tx: Transaction, moves: Sequence[JobMove], source: str) -> None:
    """Store the steps of locked jobs: state and history. Send their events, and tell matchers which jobs left or entered queues.

    A job of the resource broker returns to the broker, instead of waiting without a placement. `source` names the user or service that
    caused the steps.
    """
    moves = [_placed_anew(each) if each.job.brokered else each for each in moves if each.steps]
    if not moves:
        return
    await tx.execute(SQL["move"], *sparse(_moved(each) for each in moves))
    notes = list(chain.from_iterable(_notes(each) for each in moves))
    if notes:
        await tx.execute(SQL["note"], *sparse(notes), source)
    if stopped := [each.job.job_id for each in moves if each.job.stop_requested and not _is_at_pilot(each)]:
        await tx.execute(SQL["forget_stops"], stopped)
    now = await tx.now()
    tell_events(
        tx, [_event(each.job, n, step, now) for each in moves for n, step in enumerate(each.steps, start=1)]
    )
    task_queue.tell_left(tx, [each.job.job_id for each in moves if each.job.state is State.WAITING])
    await _tell_entered(tx, moves)
    await brokering.follow(tx, [(each.job, each.steps) for each in moves if each.job.brokered])


def _placed_anew(move: JobMove) -> JobMove:
    return msgspec.structs.replace(move, steps=to_broker(move.steps))


def _event(job: Job, n: int, step: Step, now: datetime) -> events.JobEvent:
    return events.JobEvent(
        job_id=job.job_id,
        seq=job.event_seq + n,
        at=now,
        event=step.event,
        state=step.state,
        epoch=job.epoch,
        owner=job.owner,
        owner_group=job.owner_group,
        vo=job.vo,
        reason=step.reason.code,
        text=step.reason.text,
        site=job.site,
    )


def tell_events(tx: Transaction, moved: Iterable[events.JobEvent]) -> None:
    """Send job events, many to a message. The events of one job keep their order."""
    lanes: list[list[events.JobEvent]] = [[] for _ in range(events.LANES)]
    for each in moved:
        lanes[events.lane(each.job_id)].append(each)
    for number, lane in enumerate(lanes):
        for start in range(0, len(lane), events.EVENTS_IN_A_MESSAGE):
            some = tuple(lane[start : start + events.EVENTS_IN_A_MESSAGE])
            tx.send(events.TOPIC, str(number), events.JobsMoved(events=some))


async def _tell_entered(tx: Transaction, moves: Sequence[JobMove]) -> None:
    jobs = [each.job for each in moves if each.steps[-1].state is State.WAITING]
    if jobs:
        await task_queue.keep(tx, (job.tq_id for job in jobs))
        task_queue.tell_entered(tx, [(job.tq_id, job.user_priority, job.job_id) for job in jobs])


def _moved(move: JobMove) -> tuple[Any, ...]:
    job, last = move.job, move.steps[-1]
    at_pilot = _is_at_pilot(move)
    return (
        job.job_id,
        last.state,
        last.reason.code,
        job.event_seq + len(move.steps),
        (at_pilot and job.stop_requested) or None,
        move.attempts if move.attempts != job.attempts else None,
        move.unstarted if move.unstarted != job.unstarted else None,
    )


def _is_at_pilot(move: JobMove) -> bool:
    return move.steps[-1].state in AT_A_PILOT


def _notes(move: JobMove) -> Iterable[tuple[Any, ...]]:
    for n, step in enumerate(move.steps[:-1] if move.end_told else move.steps, start=1):
        if step.event is Event.START:
            continue  # the lease records the start, and later the attempt
        yield (
            move.job.job_id,
            move.job.event_seq + n,
            step.before,
            step.event,
            step.state,
            move.job.epoch,
            step.reason.code,
            step.reason.text,
            step.source or None,
        )


async def ask_stop(tx: Transaction, job_ids: Collection[JobId], stop: Stop, order: StopOrder) -> None:
    """Store that pilots are to stop these jobs. `stop` says whether to kill, hold or reschedule them, `order` who asked and why.

    Nothing is sent.
    """
    if job_ids:
        await tx.execute(SQL["ask_stop"], sorted(job_ids), stop, order.source, order.reason)


async def waiting(tx: Transaction) -> list[tuple[TaskQueueId, float, list[JobId]]]:
    """Return all waiting jobs that have job rows, as triples of task queue, user priority, and job ids in ascending order."""
    rows = await tx.fetch(SQL["waiting"])
    return [(row["tq_id"], row["user_priority"], row["job_ids"]) for row in rows]


async def waiting_in(
    tx: Transaction, tq_ids: Sequence[TaskQueueId]
) -> list[tuple[TaskQueueId, float, list[JobId]]]:
    """Return the waiting jobs of these task queues that have job rows.

    Each is a triple of task queue, user priority, and at most 4,096 job ids in ascending order.
    """
    rows = await tx.fetch(SQL["waiting_in"], tq_ids)
    return [(row["tq_id"], row["user_priority"], row["job_ids"]) for row in rows]


async def waiting_among(
    tx: Transaction, job_ids: Sequence[JobId]
) -> list[tuple[TaskQueueId, float, list[JobId]]]:
    """Return those of the jobs that wait and have job rows, as triples of task queue, user priority, and job ids in ascending order."""
    rows = await tx.fetch(SQL["waiting_among"], job_ids)
    return [(row["tq_id"], row["user_priority"], row["job_ids"]) for row in rows]


async def count_waiting(tx: Transaction) -> dict[TaskQueueId, int]:
    """Return how many jobs wait in each task queue. Queues in which none waits are absent."""
    rows = await tx.fetch(SQL["count_waiting"])
    return {row["tq_id"]: row["jobs"] for row in rows}
