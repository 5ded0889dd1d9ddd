"""The endpoints of computing elements in the database: written by the pilot submitter, read by all who judge elements."""

from collections.abc import Sequence
from typing import NamedTuple

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId

SQL = load(__file__)


class DoorRow(NamedTuple):
    """One endpoint."""

    site: str
    ce: str
    forwards: str
    """The names of forwarded attributes, separated by commas."""
    terms: str
    """JSON."""


async def write(tx: Transaction, doors: Sequence[DoorRow]) -> None:
    """Store all endpoints, and delete the others."""
    await tx.execute(SQL["keep_only"], [each.site for each in doors], [each.ce for each in doors])
    if doors:
        await tx.execute(SQL["write"], *dense(doors))


async def forwards(tx: Transaction) -> dict[CeId, tuple[str, ...]]:
    """Return the forwarded attributes by element."""
    return {CeId(row["site"], row["ce"]): tuple(row["forwards"]) for row in await tx.fetch(SQL["forwards"])}


async def terms(tx: Transaction) -> dict[CeId, str]:
    """Return what endpoints ask for, as JSON, by element."""
    return {CeId(row["site"], row["ce"]): row["terms"] for row in await tx.fetch(SQL["terms"])}
