"""Jobs that are sent directly, in the database: their placements, pilots and leases, for who holds the leases."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import AttemptId, Epoch, JobId, PilotId
from wms.jobdesc.array import expand
from wms.jobdesc.description import JobDescription
from wms.site import Resource

SQL = load(__file__)


class DirectJob(msgspec.Struct, frozen=True, kw_only=True):
    """A placed job that is sent directly, as it stands; its pilot is no process, but has its lease."""

    job_id: JobId
    attempt: int
    """The number of the placement."""
    site: str
    ce: str
    pilot_id: PilotId
    dispatcher: str
    vo: str
    owner_group: str
    owner: str
    resource: str
    """The resource that the pilot stands for, as JSON."""
    slots: int
    placed: str
    """The state of the placement."""
    age: float
    """Seconds since the pilot was stored."""
    state: str
    epoch: Epoch
    stop_requested: str
    phase: Literal["offered", "accepted"] | None
    """The phase of the pilot's lease; None if it has none."""
    seconds_left: float | None
    is_late: bool
    """Whether the latest start has passed."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt that the lease is of."""
        return AttemptId(self.job_id, self.epoch)

    @property
    def is_sent(self) -> bool:
        """Whether its element is known to have it."""
        return self.placed != "Ordered"

    @property
    def offers(self) -> Resource:
        """The resource that the pilot stands for."""
        return msgspec.json.decode(self.resource, type=Resource)


async def hold(tx: Transaction, holder: str, seconds: float, limit: int) -> list[DirectJob]:
    """Take up to `limit` jobs that are sent directly, or keep those taken before; after `seconds` seconds others may take them."""
    return [DirectJob(**row) for row in await tx.fetch(SQL["hold"], holder, seconds, limit)]


async def descriptions(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, JobDescription]:
    """Return what these jobs do, with their own values for the placeholders of arrays."""
    found = {}
    for row in await tx.fetch(SQL["what"], job_ids):
        description = msgspec.json.decode(row["description"], type=JobDescription)
        own = msgspec.json.decode(row["parameters"]) if row["parameters"] else {}
        found[row["job_id"]] = expand(description, row["array_index"] or 0, own)
    return found
