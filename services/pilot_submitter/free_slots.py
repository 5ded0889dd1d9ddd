"""The slots that elements without a queue have left for further pilots. They start each pilot at once, so all pilots together must fit."""

from collections import Counter
from collections.abc import Iterable

from wms.db.pilot import EqualPilots
from wms.dispatch.reservation import WITHOUT_QUEUE
from wms.ids import CeId
from wms.site import ComputingElement


class FreeSlots:
    """Counts the slots of pilots against those of their elements. `alive` are the live pilots."""

    def __init__(self, alive: Iterable[EqualPilots]) -> None:
        self._taken = Counter[CeId]()
        for each in alive:
            self._taken[CeId(each.site, each.ce)] += each.pilots * each.slots

    def take(self, element: ComputingElement) -> ComputingElement | None:
        """Count one more pilot, and return the element as it sees it: the last pilot gets the slots that are left. None: no slot is left.

        An element with a queue is returned as it is, since its pilots wait there.
        """
        slots = element.slots_per_pilot
        if element.dispatcher in WITHOUT_QUEUE:
            slots = min(slots, element.slots - self._taken[element.ce_id])
        if slots <= 0:
            return None
        self._taken[element.ce_id] += slots
        return element.sized(slots)
