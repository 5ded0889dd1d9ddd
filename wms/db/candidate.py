"""Candidates for brokered jobs: the elements that advertise themselves, with their load, and where jobs failed to start."""

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


class FreshElement(msgspec.Struct, frozen=True, kw_only=True):
    """An element whose ad is valid, and the placements there that the ad does not count yet."""

    element: ComputingElement
    attributes: Mapping[str, Any]
    """What the ad says, by the names of GLUE."""
    advertised_at: datetime
    coming: int


class WaitingThere(NamedTuple):
    """How long a placed job has waited at an element so far."""

    place: CeId
    seconds: float


class FailedAtPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A placement that did not start its job."""

    job_id: JobId
    place: CeId
    code: str
    """One of `PlacementFault`."""
    reason: str
    """The code, and a sentence if there is one."""
    created_at: datetime


async def fresh(tx: Transaction) -> list[FreshElement]:
    """Return the elements whose ads are valid, by site and name."""
    rows = await tx.fetch(SQL["fresh"])
    elements = await ad.elements(tx, rows)
    return [
        FreshElement(
            element=elements[place],
            attributes=msgspec.json.decode(row["attributes"]),
            advertised_at=row["advertised_at"],
            coming=row["coming"],
        )
        for row in rows
        if (place := CeId(row["site"], row["ce"])) in elements
    ]


async def waiting(tx: Transaction, most: int) -> list[WaitingThere]:
    """Return how long placed jobs without a reservation have waited so far, at most so many of each element, the longest first."""
    rows = await tx.fetch(SQL["waiting"], most)
    return [WaitingThere(CeId(row["site"], row["ce"]), row["seconds"]) for row in rows]


async def failures(tx: Transaction, job_ids: Collection[JobId]) -> list[FailedAtPlace]:
    """Return the failed placements of these jobs, first to last."""
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
