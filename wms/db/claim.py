"""The claim: waiting jobs become offers to pilots, each under a lease, in one statement that no other matcher can repeat."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import asyncpg
import msgspec

from wms.db.array import joined
from wms.db.database import Transaction
from wms.db.job import tell_events
from wms.db.sql import load
from wms.ids import Epoch, JobId, PilotId, RequestId, TaskQueueId
from wms.job.state import Event, State
from wms.messages import events
from wms.messages.site_inbox import OfferedJob

SQL = load(__file__)

_JOB_ID = attrgetter("job_id")


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A waiting job that is claimed for a pilot."""

    job_id: JobId
    pilot_id: PilotId
    request_id: RequestId
    site: str
    ce: str
    tq_id: TaskQueueId
    """The queue that it was drawn from; the job may have been edited since."""


class Claimed(msgspec.Struct, frozen=True):
    """A claimed job, offered to a pilot."""

    job_id: JobId
    epoch: Epoch
    event_seq: int
    owner: str
    owner_group: str
    vo: str
    array_index: int | None
    parameters: str | None
    """JSON: the own parameters of a sweep's job."""
    pilot_id: PilotId
    request_id: RequestId
    site: str
    description: str
    """JSON."""

    def offered(self) -> OfferedJob:
        """Return the job as it is offered to its pilot."""
        return OfferedJob(
            job_id=self.job_id,
            epoch=self.epoch,
            owner=self.owner,
            owner_group=self.owner_group,
            vo=self.vo,
            description=msgspec.Raw(self.description.encode()),
            array_index=self.array_index,
            parameters=msgspec.json.decode(self.parameters) if self.parameters else {},
        )


async def large_offers(tx: Transaction, job_ids: Sequence[JobId], limit: int) -> list[Claimed]:
    """Return those offered jobs whose descriptions and parameters have more bytes than a limit."""
    if not job_ids:
        return []
    return [Claimed(*row) for row in await tx.fetch(SQL["large_offers"], list(job_ids), limit)]


async def claim(
    tx: Transaction, claims: Sequence[Claim], offer_seconds: float, generation: int
) -> list[Claimed] | None:
    """Claim the jobs that still wait, and in the same queue, for pilots; the others are left out. A job must be named once.

    Returns None, and claims nothing, if elements began to state limits since that generation
    (`wms.db.limit.advertising`). Raises LockNotAvailableError if another transaction has locked one of them. A wary
    transaction leaves such jobs out instead: nobody waits, so that nobody waits in a circle.
    """
    ordered = sorted(claims, key=_JOB_ID)
    by_id = {each.job_id: each for each in ordered}
    if tx.wary:
        ids = [row["job_id"] for row in await tx.fetch(SQL["not_busy"], list(by_id))]
        ordered = [by_id[job_id] for job_id in ids]
    rows = await _claim(tx, ordered, offer_seconds, generation)
    if rows and not rows[0]["limits"]:
        return None
    taken = [_made(by_id[row["job_id"]], row) for row in rows if row["job_id"] is not None]
    now = await tx.now()
    tell_events(tx, [_matched(each, now) for each in taken])
    return taken


async def _claim(
    tx: Transaction, claims: Sequence[Claim], offer_seconds: float, generation: int
) -> list[asyncpg.Record]:
    if not claims:
        return []
    return await tx.fetch(
        SQL["claim"],
        [each.job_id for each in claims],
        joined([each.pilot_id for each in claims]),
        joined([each.request_id for each in claims]),
        joined([each.site for each in claims]),
        joined([each.ce for each in claims]),
        offer_seconds,
        generation,
        [each.tq_id for each in claims],
    )


def _made(claim: Claim, row: asyncpg.Record) -> Claimed:
    job_id, epoch, event_seq, owner, owner_group, vo, array_index, parameters, description, _ = row
    return Claimed(
        job_id,
        epoch,
        event_seq,
        owner,
        owner_group,
        vo,
        array_index,
        parameters,
        claim.pilot_id,
        claim.request_id,
        claim.site,
        description,
    )


def _matched(claimed: Claimed, now: datetime) -> events.JobEvent:
    return events.JobEvent(
        job_id=claimed.job_id,
        seq=claimed.event_seq,
        at=now,
        event=Event.MATCH,
        state=State.MATCHED,
        epoch=claimed.epoch,
        owner=claimed.owner,
        vo=claimed.vo,
        reason="OFFERED",
        text=claimed.pilot_id,
        site=claimed.site,
    )


async def offered(tx: Transaction, request_ids: Sequence[RequestId]) -> dict[RequestId, list[Claimed]]:
    """Return the offers of earlier requests, by request: a repeated request gets the same offers."""
    found: dict[RequestId, list[Claimed]] = {}
    for row in await tx.fetch(SQL["offered"], request_ids):
        found.setdefault(row["request_id"], []).append(_claimed(row))
    return found


def _claimed(row: Mapping[str, Any]) -> Claimed:
    return Claimed(**{name: row[name] for name in Claimed.__struct_fields__})
