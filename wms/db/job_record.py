"""Job records: what the broker does with each brokered job, step by step, and the ranking that led to its place."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import Identity, JobId, TaskQueueId
from wms.job.state import State
from wms.messages.replies.rankings import RankedElement

SQL = load(__file__)

Phase: TypeAlias = Literal["Choosing", "Deciding", "Confirming", "Placed", "Over"]
"""What a record waits for: a choice of sites, their decisions, the confirmation of the chosen one, the job's end, or nothing."""

_ranking = msgspec.json.Decoder(tuple[RankedElement, ...])


class ClaimedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record whose next step is this broker's to do."""

    job_id: JobId
    seq: int
    """The number of the job's move to Checking."""
    phase: Phase
    since: datetime
    """The time since which failed placements count."""
    round: int
    """The number of times that sites were asked for agreements."""
    asked: tuple[str, ...]
    """The ids of the agreements that are not settled, the best first."""
    tries: int
    """The number of times that this step was begun; more than 1 after a crash."""
    ranking: tuple[RankedElement, ...]
    state: State
    event_seq: int
    """The number of the job's last move."""
    tq_id: TaskQueueId
    array_index: int | None
    """Its number in its array, from 0; None outside of arrays."""
    identity: Identity
    submitted_at: datetime
    body: str
    """The description as JSON."""

    @property
    def is_checking(self) -> bool:
        """Whether the job is still to be placed on account of the move that the record answers."""
        return self.state is State.CHECKING


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a step: the next phase, and the seconds until its step is due."""

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
    """A record as it is shown."""

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
    """Begin to broker jobs, given with the numbers of their moves to Checking. Jobs that are gone are left out.

    For `fresh` jobs earlier failures do not count any more. A number that was adopted before changes nothing.
    """
    if orders:
        await tx.execute(SQL["adopt"], list(orders), list(orders.values()), sorted(fresh))


async def unknown(tx: Transaction, limit: int) -> dict[JobId, int]:
    """Return up to `limit` jobs that the broker was ordered to place and has no record of, with the numbers of their moves."""
    return {row["job_id"]: row["seq"] for row in await tx.fetch(SQL["unknown"], limit)}


async def claim(tx: Transaction, owner: str, seconds: float, limit: int) -> list[ClaimedRecord]:
    """Claim up to `limit` records whose next step is due, for `seconds` seconds; after them another broker may take over."""
    return [_claimed(dict(row)) for row in await tx.fetch(SQL["claim"], owner, seconds, limit)]


def _claimed(row: dict[str, Any]) -> ClaimedRecord:
    identity = Identity(row.pop("owner"), row.pop("owner_group"), row.pop("vo"))
    row |= {
        "asked": tuple(row["asked"]),
        "ranking": _ranking.decode(row["ranking"]),
        "state": State(row["state"]),
    }
    return ClaimedRecord(identity=identity, **row)


async def hold(tx: Transaction, job_ids: Collection[JobId], owner: str) -> set[JobId]:
    """Lock records at the end of steps; return those that this owner has claimed, and still has."""
    found = await tx.fetch(SQL["hold"], sorted(job_ids), owner)
    return {row["job_id"] for row in found if row["is_mine"]}


async def finish(tx: Transaction, results: Sequence[StepResult]) -> None:
    """Store the results of steps whose records are held."""
    if results:
        await tx.execute(SQL["finish"], *dense(_row(each) for each in results))


def _row(each: StepResult) -> tuple[JobId, str, float, int, str, str | None, str, str]:
    ranking = None if each.ranking is None else msgspec.json.encode(each.ranking).decode()
    asked = " ".join(each.asked)
    return each.job_id, each.phase, each.seconds, each.round, asked, ranking, each.reason, each.text


async def hasten(tx: Transaction, job_ids: Collection[JobId]) -> None:
    """Let the next steps of these jobs be due now."""
    if job_ids:
        await tx.execute(SQL["hasten"], sorted(job_ids))


async def decided(tx: Transaction, job_ids: Collection[JobId]) -> None:
    """Let the next steps of these jobs be due now, where no agreement is waited for any more."""
    await tx.execute(SQL["decided"], sorted(job_ids))


class OverRecord(msgspec.Struct, frozen=True):
    """The record of a placed job that has ended, or is held, with its agreements."""

    job_id: JobId
    asked: tuple[str, ...]
    is_held: bool


async def over(tx: Transaction, limit: int) -> list[OverRecord]:
    """Lock and return up to `limit` records of placed jobs that have ended or are held."""
    rows = await tx.fetch(SQL["over"], limit)
    return [OverRecord(row["job_id"], tuple(row["asked"]), row["is_held"]) for row in rows]


async def close(tx: Transaction, job_ids: Collection[JobId]) -> None:
    """Close the records of ended jobs."""
    if job_ids:
        await tx.execute(SQL["close"], sorted(job_ids))


async def of_job(tx: Transaction, job_id: JobId) -> JobRecord | None:
    """Return the record of a job; None if the broker has not begun with it."""
    row = await tx.fetchrow(SQL["of_job"], job_id)
    if row is None:
        return None
    return JobRecord(**{**row, "asked": tuple(row["asked"]), "ranking": _ranking.decode(row["ranking"])})


async def counts(tx: Transaction) -> dict[str, int]:
    """Return the number of records in each phase in which something is to be done."""
    return {row["phase"]: row["jobs"] for row in await tx.fetch(SQL["counts"])}
