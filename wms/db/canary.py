"""Canaries in the database: those that are out, their elements and askers, and their outcomes."""

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
    """A canary that is out."""

    job_id: JobId
    site: str
    ce: str
    asked_by: str
    state: str | None
    """The state of its job; None if the job is gone."""
    age: float
    """Seconds."""


class CanaryTarget(msgspec.Struct, frozen=True, kw_only=True):
    """An element that is to be tried; `vo` is empty where no pilot ever went."""

    site: str
    ce: str
    vo: str


async def insert(tx: Transaction, job_id: JobId, site: str, ce: str, asked_by: str) -> None:
    """Store a canary that is sent now."""
    await tx.execute(SQL["insert"], job_id, site, ce, asked_by)


async def out(tx: Transaction) -> list[Canary]:
    """Return the canaries that are out."""
    return [Canary(**row) for row in await tx.fetch(SQL["open"])]


async def close(tx: Transaction, job_id: JobId, outcome: Outcome) -> None:
    """Store the outcome of a canary."""
    await tx.execute(SQL["close"], job_id, outcome)


async def wanted(tx: Transaction) -> list[CanaryTarget]:
    """Return the elements that are probed and have no canary out."""
    return [CanaryTarget(**row) for row in await tx.fetch(SQL["wanted"])]


async def of_place(tx: Transaction, site: str, ce: str, limit: int) -> list[CanaryLine]:
    """Return the last canaries of an element, or of all of a site, newest first."""
    return [CanaryLine(**row) for row in await tx.fetch(SQL["of_place"], site, ce, limit)]


async def elements(tx: Transaction, site: str, ce: str) -> list[ComputingElement]:
    """Return an element, or all elements of a site, that advertise themselves now."""
    rows = await tx.fetch(SQL["elements"], site, ce)
    return [element for row in rows if (element := ad.element_of(row["element"]))]


async def may_look(tx: Transaction) -> bool:
    """Return whether nobody else sends canaries now; holds until the transaction ends."""
    alone: bool = await tx.fetchval(SQL["may_look"])
    return alone


async def overdue(tx: Transaction) -> list[JobId]:
    """Return canaries that were given up and whose jobs still exist."""
    return [row["job_id"] for row in await tx.fetch(SQL["overdue"], sorted(ENDED))]


async def is_known(tx: Transaction, site: str, ce: str) -> bool:
    """Return whether a site, or an element of it, is known."""
    known: bool = await tx.fetchval(SQL["is_known"], site, ce)
    return known


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete some canaries that ended so many seconds ago; return how many."""
    return await tx.execute(SQL["forget"], age, limit)
