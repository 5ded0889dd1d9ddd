"""What the resource broker knows of computing elements as candidates for jobs: their ads, their load, and where jobs failed to start."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from wms.db import ad
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId, JobId
from wms.site import ComputingElement

SQL = load(__file__)


class FreshElement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A computing element whose ad has not expired. `coming` is the number of placements there that its ad cannot count yet."""

    element: ComputingElement
    attributes: Mapping[str, Any]
    """What the ad says of the computing element's load and properties, by the attribute names of GLUE."""
    advertised_at: datetime
    coming: int
    has_endpoint: bool
    """Whether the pilot submitter knows an endpoint of it, as it stores the lifetime of pilots there."""


class WaitingThere(NamedTuple):
    """How many seconds one placed job has waited so far at one computing element."""

    place: CeId
    seconds: float


class FailedAtPlace(msgspec.Struct, frozen=True, kw_only=True):
    """One failed placement of a job: its job never started at that computing element."""

    job_id: JobId
    place: CeId
    code: str
    """The reason code, one of `PlacementFault`."""
    reason: str
    """The reason code, followed by a sentence if one was stored."""
    created_at: datetime


async def fresh(tx: Transaction) -> list[FreshElement]:
    """Return the computing elements whose ads have not expired, with their pending placements, in the order of site and name."""
    rows = await tx.fetch(SQL["fresh"])
    elements = await ad.elements(tx, rows)
    return [
        FreshElement(
            element=elements[place],
            attributes=msgspec.json.decode(row["attributes"]),
            advertised_at=row["advertised_at"],
            coming=row["coming"],
            has_endpoint=row["pilot_seconds"] is not None,
        )
        for row in rows
        if (place := CeId(row["site"], row["ce"])) in elements
    ]


async def waiting(tx: Transaction, most: int) -> list[WaitingThere]:
    """Return how long placed jobs that have not started have waited so far: at most `most` of each computing element, longest first.

    Jobs with a reservation are left out, as they wait for its start.
    """
    rows = await tx.fetch(SQL["waiting"], most)
    return [WaitingThere(CeId(row["site"], row["ce"]), row["seconds"]) for row in rows]


async def failures(tx: Transaction, job_ids: Collection[JobId]) -> list[FailedAtPlace]:
    """Return the failed placements of these jobs, ordered by job, and first to last within a job."""
    return [
        FailedAtPlace(
            job_id=row["job_id"],
            place=CeId(row["site"], row["ce"]),
            code=row["reason"],
            reason=f"{row['reason']}: {row['reason_text']}" if row["reason_text"] else row["reason"],
            created_at=row["created_at"],
        )
        for row in await tx.fetch(SQL["failed"], sorted(job_ids))
    ]
