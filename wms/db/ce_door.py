"""Endpoints of computing elements in the database. The pilot submitter writes them; the services that judge elements read them."""

from collections.abc import Sequence
from typing import NamedTuple

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId

SQL = load(__file__)


class DoorRow(NamedTuple):
    """The stored endpoint of one computing element."""

    site: str
    ce: str
    forwards: str
    """The names of the attributes that are forwarded to the batch system, separated by commas."""
    terms: str
    """The terms on which the endpoint requests hosts from its batch system (`DoorTerms`), as JSON."""


async def write(tx: Transaction, doors: Sequence[DoorRow]) -> None:
    """Store these endpoints, and delete all others."""
    await tx.execute(SQL["keep_only"], [each.site for each in doors], [each.ce for each in doors])
    if doors:
        await tx.execute(SQL["write"], *dense(doors))


async def forwards(tx: Transaction) -> dict[CeId, tuple[str, ...]]:
    """Return the names of the attributes that each element forwards to its batch system."""
    return {CeId(row["site"], row["ce"]): tuple(row["forwards"]) for row in await tx.fetch(SQL["forwards"])}


async def terms(tx: Transaction) -> dict[CeId, str]:
    """Return the terms on which each element's endpoint requests hosts, as JSON."""
    return {CeId(row["site"], row["ce"]): row["terms"] for row in await tx.fetch(SQL["terms"])}
