"""Jobs that are sent to computing elements directly, as batch jobs, in the database. The pilot submitter that sends one holds its lease."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import AttemptId, Epoch, JobId, PilotId
from wms.jobdesc.array import own_description
from wms.jobdesc.description import JobDescription
from wms.site import Resource

SQL = load(__file__)


class DirectJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is sent to its computing element as a batch job. A pilot row without a process represents it and owns its lease."""

    job_id: JobId
    attempt: int
    """The number of the placement among those of the job, from 1."""
    site: str
    ce: str
    pilot_id: PilotId
    dispatcher: str
    vo: str
    owner_group: str
    owner: str
    resource: str
    """The resource on which the job was placed, in the form in which pilots report theirs, as JSON."""
    slots: int
    placed: str
    """The state of the placement, one of `PlacementState`."""
    age: float
    """Seconds since the pilot row that represents the job was stored."""
    state: str
    epoch: Epoch
    stop_requested: str
    phase: Literal["offered", "accepted"] | None
    """The phase of the lease; None if there is no lease."""
    seconds_left: float | None
    is_late: bool
    """Whether the latest start that the job allows has passed."""

    @property
    def attempt_id(self) -> AttemptId:
        """The job's id with its epoch, which identify the attempt that the lease is for."""
        return AttemptId(self.job_id, self.epoch)

    @property
    def is_sent(self) -> bool:
        """Whether the job is known to have reached its computing element: its placement is past the state Ordered."""
        return self.placed != "Ordered"

    @property
    def offers(self) -> Resource:
        """The resource that the job was placed on, decoded."""
        return msgspec.json.decode(self.resource, type=Resource)


async def hold(tx: Transaction, holder: str, seconds: float, limit: int) -> list[DirectJob]:
    """Assign up to `limit` jobs that are sent directly to the service instance `holder`. Return them and those that it has already.

    After `seconds` seconds without another call, other instances may take them.
    """
    return [DirectJob(**row) for row in await tx.fetch(SQL["hold"], holder, seconds, limit)]


async def descriptions(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, JobDescription]:
    """Return the descriptions of these jobs, with the placeholders of job arrays filled in by each job's own values."""
    return {
        row["job_id"]: own_description(row["description"], row["array_index"], row["parameters"])
        for row in await tx.fetch(SQL["what"], job_ids)
    }
