"""How many slot seconds (wall seconds times processors) owners used, in the database.

The figure of each owner halves every half-life. It is updated when usage is added.
"""

from collections.abc import Mapping

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import Identity

SQL = load(__file__)


async def charge(tx: Transaction, slot_seconds: Mapping[Identity, float], half_life_seconds: float) -> None:
    """Add slot seconds, by owner, to the usage of owners, for attempts that end in this transaction. Older usage decays until now."""
    if slot_seconds:
        owners, groups, vos = (list(column) for column in zip(*slot_seconds, strict=True))
        await tx.execute(SQL["charge"], vos, groups, owners, list(slot_seconds.values()), half_life_seconds)


async def read(tx: Transaction, half_life_seconds: float) -> dict[Identity, float]:
    """Return the usage of each owner in slot seconds, where older usage has decayed until now."""
    rows = await tx.fetch(SQL["read"], half_life_seconds)
    return {Identity(row["owner"], row["owner_group"], row["vo"]): row["slot_seconds"] for row in rows}
