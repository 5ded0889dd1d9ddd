"""Handles `wms.broker.placements`: placements that the resource broker has just ordered are carried out at once.

A message only makes it faster. The loop that carries placements out also looks by itself.
"""

from collections.abc import Callable

from wms.bus.delivery import Delivery
from wms.db.database import Transaction
from wms.messages.broker import PlacementsOrdered


class PlacementOrders:
    """Wakes the loop that carries placements out. `wake` is called once for each batch of messages."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    async def handle(self, tx: Transaction, _batch: list[Delivery[PlacementsOrdered]]) -> None:
        """Start the next round after the commit of this transaction. The database says what is to be done in it."""
        tx.on_commit(self._wake)
