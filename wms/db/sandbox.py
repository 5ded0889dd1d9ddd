"""Query for the sandboxes that jobs use."""

from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


async def referenced(tx: Transaction) -> set[str]:
    """Return the digests of all sandboxes to which stored jobs refer, as input or as output."""
    return {row["digest"] for row in await tx.fetch(SQL["referenced"])}
