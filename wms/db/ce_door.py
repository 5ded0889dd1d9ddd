"""How computing elements are reached and asked for hosts, in the database: written by who sends pilots, for all who judge."""

from collections.abc import Sequence
from typing import NamedTuple

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId

SQL = load(__file__)


class DoorRow(NamedTuple):
    """One door."""

    site: str
    ce: str
    forwards: str
    """The names of what is forwarded, by commas."""
    terms: str
    """JSON."""


async def write(tx: Transaction, doors: Sequence[DoorRow]) -> None:
    """Write down all doors that there are, and forget the others."""
    await tx.execute(SQL["keep_only"], [each.site for each in doors], [each.ce for each in doors])
    if doors:
        await tx.execute(SQL["write"], *dense(doors))


async def forwards(tx: Transaction) -> dict[CeId, tuple[str, ...]]:
    """Return by element what is forwarded there."""
    return {CeId(row["site"], row["ce"]): tuple(row["forwards"]) for row in await tx.fetch(SQL["forwards"])}


async def terms(tx: Transaction) -> dict[CeId, str]:
    """Return by element what is asked for there, as JSON."""
    return {CeId(row["site"], row["ce"]): row["terms"] for row in await tx.fetch(SQL["terms"])}
