"""Handles `wms.broker.placements`: placements that the resource broker has just ordered are carried out at once.

A message only makes it faster: the loop that carries placements out also reads new ones from the database every half second.
"""

from collections.abc import Callable

from wms.bus.delivery import Delivery
from wms.db.database import Transaction
from wms.messages.broker import PlacementsOrdered


class PlacementOrders:
    """Handles messages on new placements. `wake` is called once for each batch and starts the loop that carries placements out."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    async def handle(self, tx: Transaction, _batch: list[Delivery[PlacementsOrdered]]) -> None:
        """Call `wake` once this transaction is committed. The messages' content is not used: the loop reads placements from the database."""
        tx.on_commit(self._wake)
