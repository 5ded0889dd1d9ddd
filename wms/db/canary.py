"""Canaries, the test jobs for computing elements, in the database: element, requester, and outcome."""

from typing import Literal

import msgspec

from wms.db import ad
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId
from wms.job.state import ENDED
from wms.messages.replies import CanaryLine
from wms.site import ComputingElement

SQL = load(__file__)

Outcome = Literal["Done", "Failed", "Killed", "late"]


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """A canary whose outcome is still open."""

    job_id: JobId
    site: str
    ce: str
    asked_by: str
    state: str | None
    """The state of the canary's job; None if the job no longer exists."""
    age: float
    """Seconds since the canary was sent."""


class CanaryTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A computing element to which a canary is to be sent. `vo` is that of its newest pilot; empty if it never had one."""

    site: str
    ce: str
    vo: str


async def insert(tx: Transaction, job_id: JobId, site: str, ce: str, asked_by: str) -> None:
    """Store a canary that is sent in this transaction; `asked_by` is its requester."""
    await tx.execute(SQL["insert"], job_id, site, ce, asked_by)


async def out(tx: Transaction) -> list[Canary]:
    """Return the canaries without an outcome, by job id."""
    return [Canary(**row) for row in await tx.fetch(SQL["open"])]


async def close(tx: Transaction, job_id: JobId, outcome: Outcome) -> None:
    """Store the outcome of a canary, unless it has one."""
    await tx.execute(SQL["close"], job_id, outcome)


async def wanted(tx: Transaction) -> list[CanaryTarget]:
    """Return the elements that are being probed and have no open canary."""
    return [CanaryTarget(**row) for row in await tx.fetch(SQL["wanted"])]


async def of_place(tx: Transaction, site: str, ce: str, limit: int) -> list[CanaryLine]:
    """Return the last `limit` canaries of an element, or of a whole site if `ce` is empty, newest first."""
    return [CanaryLine(**row) for row in await tx.fetch(SQL["of_place"], site, ce, limit)]


async def elements(tx: Transaction, site: str, ce: str) -> list[ComputingElement]:
    """Return the elements with unexpired ads: one, or all of a site if `ce` is empty."""
    rows = await tx.fetch(SQL["elements"], site, ce)
    return [element for row in rows if (element := ad.element_of(row["element"]))]


async def may_look(tx: Transaction) -> bool:
    """Return whether this transaction got the lock for sending canaries, which it holds until it ends."""
    alone: bool = await tx.fetchval(SQL["may_look"])
    return alone


async def overdue(tx: Transaction) -> list[JobId]:
    """Return the jobs of canaries with the outcome late, if they have not ended and were not asked to stop.

    Only canaries that were given up within the last day count.
    """
    return [row["job_id"] for row in await tx.fetch(SQL["overdue"], sorted(ENDED))]


async def is_known(tx: Transaction, site: str, ce: str) -> bool:
    """Return whether a site, or one element if `ce` is given, ever had an ad or a health state."""
    known: bool = await tx.fetchval(SQL["is_known"], site, ce)
    return known


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` canaries that ended more than `age` seconds ago; return the number of deleted ones."""
    return await tx.execute(SQL["forget"], age, limit)
