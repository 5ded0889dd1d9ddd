"""The limits on pilots that ads state: lowers elements to them, and counts pilots that are about to be sent against them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from wms.db import limit
from wms.db.database import Transaction
from wms.db.pilot import EqualPilots, NewPilot
from wms.ids import CeId
from wms.site import ComputingElement


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


def lowered(
    elements: Mapping[CeId, ComputingElement], alive: Iterable[EqualPilots], left: Mapping[CeId, int]
) -> list[ComputingElement]:
    """Return the elements with their limits on pilots lowered to those alive and those that their ads still allow (`left`)."""
    there: Counter[CeId] = Counter()
    for supply in alive:
        there[CeId(supply.site, supply.ce)] += supply.pilots
    return [
        each
        if left.get(place, 0) <= 0
        else replace(each, max_pilots=min(each.pilot_limit, there[place] + left[place]))
        for place, each in elements.items()
    ]
