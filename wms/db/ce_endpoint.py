"""Endpoints of computing elements in the database: how each requests hosts from its batch system.

The pilot submitter writes them, other services read them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId

SQL = load(__file__)


class EndpointRow(NamedTuple):
    """The endpoint of one computing element as stored. The pilot submitter sends pilots to the element through it."""

    site: str
    ce: str
    forwards: str
    """The names of the attributes that are forwarded to the batch system, separated by commas; empty if none."""
    terms: str
    """How the endpoint requests hosts from its batch system (`HostRequestTerms`), as JSON."""


async def write(tx: Transaction, endpoints: Sequence[EndpointRow]) -> None:
    """Store the endpoints of computing elements, and delete those of all elements that are not among them."""
    await tx.execute(SQL["keep_only"], [each.site for each in endpoints], [each.ce for each in endpoints])
    if endpoints:
        await tx.execute(SQL["write"], *dense(endpoints))


async def forwards(tx: Transaction) -> dict[CeId, tuple[str, ...]]:
    """Return, for each computing element, the names of the attributes that its endpoint forwards to the batch system."""
    return {CeId(row["site"], row["ce"]): tuple(row["forwards"]) for row in await tx.fetch(SQL["forwards"])}


async def terms(tx: Transaction) -> dict[CeId, str]:
    """Return, for each computing element, how its endpoint requests hosts from the batch system (`HostRequestTerms`), as JSON."""
    return {CeId(row["site"], row["ce"]): row["terms"] for row in await tx.fetch(SQL["terms"])}
