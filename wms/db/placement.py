"""Placements in the database: the resource broker's decisions on where jobs run, which the pilot submitter carries out."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg
import msgspec

from wms.broker.placement import (
    OPEN,
    Dispatch,
    PlacementEvent,
    PlacementFault,
    PlacementState,
    placement_sources,
)
from wms.db import job
from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.job import JobMove
from wms.db.sql import load
from wms.ids import CeId, JobId, PilotId
from wms.job.job import TEXT_LIMIT, Job, path
from wms.job.reasons import Code, Reason
from wms.job.state import Event, State
from wms.jobdesc.array import own_description
from wms.jobdesc.description import JobDescription
from wms.matching.grouping import Requirements
from wms.messages import broker

SQL = load(__file__)


class NewPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """A decision of the resource broker: this job runs at this computing element, perhaps in a reservation."""

    job_id: JobId
    site: str
    ce: str
    rank: int = 1
    """The place of the computing element in the resource broker's ranking for the job, from 1."""
    dispatch: Dispatch = "pilot"
    agreement_id: str | None = None
    reservation: str = ""
    """The name of the reservation in the batch system; empty for none."""
    start_at: datetime | None = None
    """When the reservation starts; None without a reservation."""
    latest_start: datetime | None = None
    """The time after which the job must not start there, by the database's clock; None: no such time."""
    walltime_seconds: float | None = None
    """Seconds to ask of the batch system, at most those of the reservation; None: what the job requests."""
    predicted: Mapping[str, Any] = {}
    """The predictions on which the decision rests, as values that JSON can hold."""


class Placement(NewPlacement, frozen=True, kw_only=True):
    """A placement as it is stored, with its state and the pilot that was sent for it."""

    attempt: int
    """The number of this placement among those of the job, from 1."""
    state: PlacementState
    pilot_id: PilotId | None
    reason: str
    """Why the placement ended: a code of `PlacementFault` or of the job's end; empty while it is open."""
    reason_text: str
    created_at: datetime
    changed_at: datetime

    @property
    def is_open(self) -> bool:
        """Whether the placement may still run its job."""
        return self.state in OPEN


class PlacementMark(msgspec.Struct, frozen=True, kw_only=True):
    """One placement that is to change its state, with the reason code and text."""

    job_id: JobId
    attempt: int
    reason: str = ""
    text: str = ""


async def order(tx: Transaction, new: Sequence[NewPlacement], source: str) -> list[JobId]:
    """Store placements as Ordered, and let their jobs wait for the pilots that will be sent for them. Return the ids of the placed jobs.

    A job that is no longer Checking is skipped: its user has ordered something else. Give at most one placement a job. `source` names the
    service that decided. Pilot submitters are told of the placements after the commit.
    """
    jobs = await job.lock(tx, [each.job_id for each in new])
    placed = [each for each in new if _may_be_placed(jobs.get(each.job_id))]
    ids = [each.job_id for each in placed]
    if not placed:
        return []
    await give_up(tx, ids, PlacementFault.SUPERSEDED, "the broker placed it anew")
    await _insert(tx, placed)
    await job.move(tx, [_bound(jobs[each.job_id], each) for each in placed], source)
    # Without the outbox: a pilot submitter that is not told looks a little later.
    told = broker.PlacementsOrdered(jobs=len(ids), at=await tx.now())
    tx.reply(broker.PLACEMENTS_TOPIC, str(ids[0]), told)
    return ids


def _may_be_placed(found: Job | None) -> bool:
    return found is not None and found.brokered and found.state is State.CHECKING


def _bound(found: Job, placed: NewPlacement) -> JobMove:
    reason = Reason(Code.PLACED, f"{placed.site}/{placed.ce}")
    return JobMove(
        job=found,
        steps=path(found.state, (Event.ENQUEUE, reason)),
        attempts=found.attempts,
        unstarted=found.unstarted,
    )


async def _insert(tx: Transaction, placed: Sequence[NewPlacement]) -> None:
    last = {row["job_id"]: row["attempt"] for row in await tx.fetch(SQL["last"], [p.job_id for p in placed])}
    rows = [
        (p.job_id, last.get(p.job_id, 0) + 1, p.rank, p.site, p.ce, p.dispatch, p.agreement_id, p.reservation,
         p.start_at, p.latest_start, p.walltime_seconds, msgspec.json.encode(p.predicted).decode())
        for p in placed
    ]  # fmt: skip
    await tx.execute(SQL["insert"], *dense(rows))


async def give_up(tx: Transaction, job_ids: Collection[JobId], code: str, text: str) -> None:
    """Close the open placements of these jobs, with a reason: Started ones become Ended, others Abandoned."""
    if job_ids:
        await tx.execute(SQL["abandon"], sorted(job_ids), code, text)
        await tx.execute(SQL["end_started"], sorted(job_ids), code, text)


async def take(
    tx: Transaction,
    taker: str,
    seconds: float,
    limit: int,
    *,
    keeping: Sequence[str] = (),
    most: Mapping[CeId, int] | None = None,
    busy: Collection[CeId] = (),
) -> list[Placement]:
    """Assign up to `limit` Ordered placements to the pilot submitter instance `taker`, and return them. Owners of jobs take turns.

    After `seconds` seconds, other instances may take those that have no pilot yet. A placement whose reservation starts later is returned
    before the start only if its element's kind of dispatcher is in `keeping`: batch systems that keep a job until its reservation starts.
    `most` bounds, for some elements, the number of live pilots for jobs without a reservation. Nothing is taken for the elements in `busy`.
    """
    bounds = dense([(each.site, each.ce, count) for each, count in (most or {}).items()], 3)
    return _placements(
        await tx.fetch(SQL["take"], taker, seconds, limit, list(keeping), *bounds, *dense(busy, 2))
    )


class PlacedWork(NamedTuple):
    """The description and the requirements of a placed job."""

    requirements: Requirements
    description: JobDescription
    """The description of this one job: for a job of an array, its own values are filled in."""
    reserved_seconds: float | None = None
    """How many seconds the job's reservation lasts, from now or its later start; None without a granted agreement."""
    submitted_at: datetime | None = None
    """When the job was submitted, from which its relative times count."""


async def work(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, PlacedWork]:
    """Return the description and the requirements of each of these jobs. Unknown jobs are absent."""
    return {
        row["job_id"]: PlacedWork(
            msgspec.json.decode(row["requirements"], type=Requirements),
            own_description(row["description"], row["array_index"], row["parameters"]),
            row["reserved_seconds"],
            row["submitted_at"],
        )
        for row in await tx.fetch(SQL["jobs"], job_ids)
    }


async def assign(tx: Transaction, pilots: Mapping[tuple[JobId, int], PilotId]) -> set[tuple[JobId, int]]:
    """Store which pilots are about to be sent for placements, by job id and number of the placement.

    Return those placements that are still ordered; for others no pilot may be sent.
    """
    if not pilots:
        return set()
    rows = await tx.fetch(SQL["assign"], *dense([(*key, pilot_id) for key, pilot_id in pilots.items()]))
    return {(row["job_id"], row["attempt"]) for row in rows}


async def mark(
    tx: Transaction, event: PlacementEvent, to: PlacementState, marks: Sequence[PlacementMark]
) -> list[tuple[JobId, int]]:
    """Apply an event to placements whose state allows it, so that their new state is `to`.

    Return job id and number of the placements that changed.
    """
    if not marks:
        return []
    rows = [(each.job_id, each.attempt, to, each.reason, each.text) for each in marks]
    moved = await tx.fetch(SQL["mark"], *dense(rows), list(placement_sources(event)))
    return [(row["job_id"], row["attempt"]) for row in moved]


class PlacementFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A placement that will never start its job, with the reason."""

    job_id: JobId
    attempt: int
    site: str
    ce: str
    code: PlacementFault
    text: str = ""


async def arrived(tx: Transaction) -> int:
    """Store placements as Sent whose pilots have been reported by their computing elements; return how many."""
    return await tx.execute(SQL["arrived"])


async def doomed(tx: Transaction, limit: int) -> list[PlacementFailure]:
    """Return up to `limit` open placements that will never start their waiting jobs.

    Their pilots have ended, their latest start has passed, or their reservations are over.
    """
    return [
        PlacementFailure(
            job_id=row["job_id"],
            attempt=row["attempt"],
            site=row["site"],
            ce=row["ce"],
            code=PlacementFault(row["reason"]),
            text=row["text"][:TEXT_LIMIT] or _WORDS[row["reason"]],
        )
        for row in await tx.fetch(SQL["doomed"], limit)
    ]


_WORDS = {
    PlacementFault.NOT_ARRIVED: "its pilot has not arrived",
    PlacementFault.PILOT_ENDED: "its pilot has ended",
    PlacementFault.RESERVATION_LOST: "what was reserved for it is over",
    PlacementFault.TOO_LATE: "its latest start has passed",
}


async def fail(tx: Transaction, failures: Sequence[PlacementFailure], source: str) -> list[PlacementFailure]:
    """Mark placements as Failed, return their jobs to the resource broker and send the broker the reasons.

    Return the placements that failed. A job that is no longer Waiting keeps its placement: its pilot has it, or its user ordered
    something else.
    """
    jobs = await job.lock(tx, [each.job_id for each in failures])
    waiting = [each for each in failures if (j := jobs.get(each.job_id)) and j.state is State.WAITING]
    marks = [
        PlacementMark(job_id=each.job_id, attempt=each.attempt, reason=each.code, text=each.text)
        for each in waiting
    ]
    moved = set(await mark(tx, PlacementEvent.FAIL, PlacementState.FAILED, marks))
    failed = [each for each in waiting if (each.job_id, each.attempt) in moved]
    await job.move(tx, [_back(jobs[each.job_id], each) for each in failed], source)
    now = await tx.now()
    for each in failed:
        tx.send(broker.TOPIC, str(each.job_id), _told(jobs[each.job_id], each, now))
    return failed


def _back(found: Job, failure: PlacementFailure) -> JobMove:
    reason = Reason(Code.PLACEMENT_FAILED, f"{failure.site}/{failure.ce}: {failure.text}"[:TEXT_LIMIT])
    return JobMove(
        job=found,
        steps=path(found.state, (Event.CHECK, reason)),
        attempts=found.attempts,
        unstarted=found.unstarted,
    )


def _told(found: Job, failure: PlacementFailure, now: datetime) -> broker.PlacementFailed:
    return broker.PlacementFailed(
        job_id=failure.job_id,
        seq=found.event_seq + 1,
        attempt=failure.attempt,
        site=failure.site,
        ce=failure.ce,
        code=failure.code,
        text=failure.text,
        at=now,
    )


async def of_job(tx: Transaction, job_id: JobId) -> list[Placement]:
    """Return all placements of a job, the first one first."""
    return _placements(await tx.fetch(SQL["of_job"], job_id))


async def open_of(tx: Transaction, job_ids: Collection[JobId]) -> dict[JobId, Placement]:
    """Return the open placements of these jobs, of which each has at most one. Jobs without one are absent."""
    return {each.job_id: each for each in _placements(await tx.fetch(SQL["open_of"], sorted(job_ids)))}


def _placements(rows: Iterable[asyncpg.Record]) -> list[Placement]:
    return [
        Placement(
            **{
                **row,
                "state": PlacementState(row["state"]),
                "predicted": msgspec.json.decode(row["predicted"]),
            }
        )
        for row in rows
    ]
