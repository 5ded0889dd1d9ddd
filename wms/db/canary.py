"""Canaries in the database: short test jobs by which avoided computing elements are tried. Stored are element, requester and outcome."""

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
    """A canary, a test job at a computing element, whose outcome is not known yet. `asked_by` is who requested it."""

    job_id: JobId
    site: str
    ce: str
    asked_by: str
    state: str | None
    """The state of the canary's job; None if the job no longer exists."""
    age: float
    """Seconds since the canary was sent."""


class CanaryTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A computing element that is to get a canary, a test job. `vo` is that of its newest pilot; empty if it never had one."""

    site: str
    ce: str
    vo: str


async def insert(tx: Transaction, job_id: JobId, site: str, ce: str, asked_by: str) -> None:
    """Store a canary, the test job `job_id` that this transaction sends to a computing element. `asked_by` is who requested it."""
    await tx.execute(SQL["insert"], job_id, site, ce, asked_by)


async def unfinished(tx: Transaction) -> list[Canary]:
    """Return the canaries (test jobs) of all computing elements that have no outcome yet, in the order of their job ids."""
    return [Canary(**row) for row in await tx.fetch(SQL["open"])]


async def close(tx: Transaction, job_id: JobId, outcome: Outcome) -> None:
    """Store the outcome of a canary, the test job `job_id`. If it has one already, nothing changes."""
    await tx.execute(SQL["close"], job_id, outcome)


async def wanted(tx: Transaction) -> list[CanaryTarget]:
    """Return the computing elements that are to be tried by a test job, and have no canary without outcome."""
    return [CanaryTarget(**row) for row in await tx.fetch(SQL["wanted"])]


async def of_place(tx: Transaction, site: str, ce: str, limit: int) -> list[CanaryLine]:
    """Return the last `limit` canaries (test jobs) of a computing element, or of the whole site if `ce` is empty, newest first."""
    return [CanaryLine(**row) for row in await tx.fetch(SQL["of_place"], site, ce, limit)]


async def elements(tx: Transaction, site: str, ce: str) -> list[ComputingElement]:
    """Return the computing element `ce`, or all elements of the site if `ce` is empty, as far as their ads have not expired."""
    rows = await tx.fetch(SQL["elements"], site, ce)
    return [element for row in rows if (element := ad.element_of(row["element"]))]


async def may_look(tx: Transaction) -> bool:
    """Try to take the lock for sending test jobs to computing elements until the transaction ends.

    Return False if another transaction holds it.
    """
    alone: bool = await tx.fetchval(SQL["may_look"])
    return alone


async def overdue(tx: Transaction) -> list[JobId]:
    """Return the jobs of canaries that were given up as late and have neither ended nor been told to stop.

    Only canaries given up within the last day count.
    """
    return [row["job_id"] for row in await tx.fetch(SQL["overdue"], sorted(ENDED))]


async def is_known(tx: Transaction, site: str, ce: str) -> bool:
    """Return whether the site, or its computing element `ce` if that is not empty, ever had an ad or a state of health."""
    known: bool = await tx.fetchval(SQL["is_known"], site, ce)
    return known


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` canaries (test jobs) that got their outcome more than `age` seconds ago; return the number of deleted ones."""
    return await tx.execute(SQL["forget"], age, limit)
