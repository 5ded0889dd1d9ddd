"""The claim: one statement turns waiting jobs into offers to pilots, each under a lease. No other matcher can claim the same job."""

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


class JobClaim(msgspec.Struct, frozen=True, gc=False):
    """A waiting job that a matcher chose for a pilot, to be claimed in the database."""

    job_id: JobId
    pilot_id: PilotId
    request_id: RequestId
    site: str
    ce: str
    tq_id: TaskQueueId
    """The task queue that the job was drawn from. If the job was edited since and is in another, the claim fails."""


class ClaimedJob(msgspec.Struct, frozen=True):
    """A job that was claimed: it is now offered to its pilot. `epoch` counts how often the job was given away."""

    job_id: JobId
    epoch: Epoch
    event_seq: int
    owner: str
    owner_group: str
    vo: str
    array_index: int | None
    parameters: str | None
    """The job's own values of its array's parameters, as JSON; None if there are none."""
    pilot_id: PilotId
    request_id: RequestId
    site: str
    tq_id: TaskQueueId
    description: str
    """The job description as JSON."""

    def offered(self, likely_seconds: float | None = None) -> OfferedJob:
        """Return the job in the form in which the message to its pilot offers it, with the likely time that jobs of its queue take."""
        return OfferedJob(
            job_id=self.job_id,
            epoch=self.epoch,
            owner=self.owner,
            owner_group=self.owner_group,
            vo=self.vo,
            description=msgspec.Raw(self.description.encode()),
            array_index=self.array_index,
            parameters=msgspec.json.decode(self.parameters) if self.parameters else {},
            likely_seconds=likely_seconds,
        )


async def large_offers(tx: Transaction, job_ids: Sequence[JobId], limit: int) -> list[ClaimedJob]:
    """Return those offered jobs whose description and parameters together have more than `limit` bytes."""
    if not job_ids:
        return []
    return [ClaimedJob(*row) for row in await tx.fetch(SQL["large_offers"], list(job_ids), limit)]


async def claim(
    tx: Transaction, claims: Sequence[JobClaim], offer_seconds: float, generation: int
) -> list[ClaimedJob] | None:
    """Claim jobs for pilots, send their events, and return the claimed jobs. `offer_seconds` is how long an offer lasts.

    Jobs that no longer wait, or wait in another queue, are left out. Each job may be named once.

    Return None, and claim nothing, if further computing elements have stated limits since version `generation`
    (`wms.db.limit.advertising`). Raise LockNotAvailableError if another transaction has locked a job. A transaction with `wary` set leaves
    such jobs out instead.
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
    tx: Transaction, claims: Sequence[JobClaim], offer_seconds: float, generation: int
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


def _made(claim: JobClaim, row: asyncpg.Record) -> ClaimedJob:
    job_id, epoch, event_seq, owner, owner_group, vo, array_index, parameters, description, _ = row
    return ClaimedJob(
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
        claim.tq_id,
        description,
    )


def _matched(claimed: ClaimedJob, now: datetime) -> events.JobEvent:
    return events.JobEvent(
        job_id=claimed.job_id,
        seq=claimed.event_seq,
        at=now,
        event=Event.MATCH,
        state=State.MATCHED,
        epoch=claimed.epoch,
        owner=claimed.owner,
        owner_group=claimed.owner_group,
        vo=claimed.vo,
        reason="OFFERED",
        text=claimed.pilot_id,
        site=claimed.site,
    )


async def offered(tx: Transaction, request_ids: Sequence[RequestId]) -> dict[RequestId, list[ClaimedJob]]:
    """Return the offers that these match requests got earlier, by request. They are sent again when a pilot repeats its request."""
    found: dict[RequestId, list[ClaimedJob]] = {}
    for row in await tx.fetch(SQL["offered"], request_ids):
        found.setdefault(row["request_id"], []).append(_claimed(row))
    return found


def _claimed(row: Mapping[str, Any]) -> ClaimedJob:
    return ClaimedJob(**{name: row[name] for name in ClaimedJob.__struct_fields__})
