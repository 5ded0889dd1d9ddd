"""Which sandboxes, the files that go with jobs or that they leave, stored jobs use."""

from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


async def referenced(tx: Transaction) -> set[str]:
    """Return the SHA-256 digests of all sandboxes that stored jobs refer to, as input or as output."""
    return {row["digest"] for row in await tx.fetch(SQL["referenced"])}
