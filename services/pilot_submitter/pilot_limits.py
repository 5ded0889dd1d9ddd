"""Counts pilots that are about to be sent against the limits on pilots that their elements' ads state."""

from collections import Counter
from collections.abc import Sequence

from wms.db import limit
from wms.db.database import Transaction
from wms.db.pilot import NewPilot
from wms.ids import CeId


async def let_come(tx: Transaction, sent: Sequence[NewPilot]) -> list[NewPilot]:
    """Count pilots that are about to be sent against the limits that their elements' ads state. Return those that the limits allow."""
    if not sent:
        return []
    granted = await limit.count_pilots(tx, Counter(CeId(each.site, each.ce) for each in sent))
    left = Counter(granted)
    kept = []
    for each in sent:
        place = CeId(each.site, each.ce)
        left[place] -= 1
        if place not in granted or left[place] >= 0:
            kept.append(each)
    return kept
