"""Job records in the database: the phase of the resource broker's work on each job, and its ranking of computing elements."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.instance import DEAD_AFTER_SECONDS
from wms.db.sql import load
from wms.ids import Identity, JobId, TaskQueueId
from wms.job.state import State
from wms.messages.replies.rankings import RankedElement

SQL = load(__file__)

Phase: TypeAlias = Literal["Choosing", "Deciding", "Confirming", "Placed", "Over"]
"""What the resource broker waits for: a choice of sites, their decisions, the confirmation of the chosen one, the job's end, or nothing."""

_ranking = msgspec.json.Decoder(tuple[RankedElement, ...])


class ClaimedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a job that the resource broker places, whose next step this broker has claimed, with the data that the step needs."""

    job_id: JobId
    seq: int
    """The number, in the job's history, of the change to Checking for which the resource broker was asked."""
    phase: Phase
    since: datetime
    """Placements of the job that failed before this time do not count."""
    round: int
    """How often sites were asked for agreements for this job."""
    asked: tuple[str, ...]
    """The ids of the agreements that were asked for and are not settled, the best ranked first."""
    tries: int
    """How many times the broker has begun the job's next step; more than 1 after a crash."""
    ranking: tuple[RankedElement, ...]
    state: State
    event_seq: int
    """The number of the last entry in the job's history."""
    tq_id: TaskQueueId
    array_index: int | None
    """The job's number in its array, from 0; None if it is in no array."""
    identity: Identity
    submitted_at: datetime
    body: str
    """The job description as JSON."""

    @property
    def is_checking(self) -> bool:
        """Whether the job is still in state Checking, so that it is to be placed."""
        return self.state is State.CHECKING


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one step of the resource broker for a job: the next phase, and in how many seconds its step is due."""

    job_id: JobId
    phase: Phase
    seconds: float = 0.0
    round: int
    asked: tuple[str, ...] = ()
    ranking: tuple[RankedElement, ...] | None = None
    """The new ranking; None keeps the last one."""
    reason: str = ""
    text: str = ""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of the resource broker's work on a job, with the fields that are shown to users."""

    job_id: JobId
    seq: int
    phase: Phase
    since: datetime
    round: int
    asked: tuple[str, ...]
    due_at: datetime
    ranking: tuple[RankedElement, ...]
    ranked_at: datetime | None
    reason: str
    reason_text: str
    created_at: datetime


async def adopt(tx: Transaction, orders: Mapping[JobId, int], fresh: Collection[JobId] = ()) -> None:
    """Create records for jobs that the resource broker is to place; restart the records of jobs that are to be placed again.

    `orders` maps each job to the number, in its history, of its change to Checking. If that number was adopted before, nothing changes. For
    jobs in `fresh`, placements that failed earlier no longer count. Unknown jobs are left out.
    """
    if orders:
        await tx.execute(SQL["adopt"], list(orders), list(orders.values()), sorted(fresh))


async def unknown(tx: Transaction, limit: int) -> dict[JobId, int]:
    """Return up to `limit` jobs that the resource broker is to place but has no record of, since the message was lost.

    The value is the number, in the job's history, of its change to Checking.
    """
    return {row["job_id"]: row["seq"] for row in await tx.fetch(SQL["unknown"], limit)}


async def claim(tx: Transaction, owner: str, seconds: float, limit: int) -> list[ClaimedRecord]:
    """Claim up to `limit` job records whose next step is due, for the resource broker instance `owner`.

    After `seconds` seconds other instances may claim them, and as soon as `owner` counts as dead. Owners of jobs take turns.
    """
    rows = await tx.fetch(SQL["claim"], owner, seconds, limit, DEAD_AFTER_SECONDS)
    return [_claimed(dict(row)) for row in rows]


def _claimed(row: dict[str, Any]) -> ClaimedRecord:
    identity = Identity(row.pop("owner"), row.pop("owner_group"), row.pop("vo"))
    row |= {
        "asked": tuple(row["asked"]),
        "ranking": _ranking.decode(row["ranking"]),
        "state": State(row["state"]),
    }
    return ClaimedRecord(identity=identity, **row)


async def hold(tx: Transaction, job_ids: Collection[JobId], owner: str) -> set[JobId]:
    """Lock these records at the end of a step. Return those jobs that the resource broker instance `owner` still has claimed."""
    found = await tx.fetch(SQL["hold"], sorted(job_ids), owner)
    return {row["job_id"] for row in found if row["is_mine"]}


async def finish(tx: Transaction, results: Sequence[StepResult]) -> None:
    """Store the results of steps, and end the claims. The caller has locked the records by `hold`."""
    if results:
        await tx.execute(SQL["finish"], *dense(_row(each) for each in results))


def _row(each: StepResult) -> tuple[JobId, str, float, int, str, str | None, str, str]:
    ranking = None if each.ranking is None else msgspec.json.encode(each.ranking).decode()
    asked = " ".join(each.asked)
    return each.job_id, each.phase, each.seconds, each.round, asked, ranking, each.reason, each.text


async def hasten(tx: Transaction, job_ids: Collection[JobId]) -> None:
    """Make the next steps of these jobs due now. Jobs in phase Placed or Over are left unchanged."""
    if job_ids:
        await tx.execute(SQL["hasten"], sorted(job_ids))


async def decided(tx: Transaction, job_ids: Collection[JobId]) -> None:
    """Make the next steps of these jobs due now, unless a site has yet to decide on one of their agreements, or to confirm it."""
    await tx.execute(SQL["decided"], sorted(job_ids))


class OverRecord(msgspec.Struct, frozen=True):
    """The record of a placed job that has ended or is Held, with the ids of its unsettled agreements."""

    job_id: JobId
    asked: tuple[str, ...]
    is_held: bool


async def over(tx: Transaction, limit: int) -> list[OverRecord]:
    """Lock and return up to `limit` records in phase Placed whose jobs have ended or are Held. Locked ones are skipped."""
    rows = await tx.fetch(SQL["over"], limit)
    return [OverRecord(row["job_id"], tuple(row["asked"]), row["is_held"]) for row in rows]


async def close(tx: Transaction, job_ids: Collection[JobId]) -> None:
    """Store that the resource broker has nothing more to do for these jobs."""
    if job_ids:
        await tx.execute(SQL["close"], sorted(job_ids))


async def of_job(tx: Transaction, job_id: JobId) -> JobRecord | None:
    """Return the record of a job; None if the resource broker has none."""
    row = await tx.fetchrow(SQL["of_job"], job_id)
    if row is None:
        return None
    return JobRecord(**{**row, "asked": tuple(row["asked"]), "ranking": _ranking.decode(row["ranking"])})
