"""Carries out operators' orders to skip a message that blocks its partition."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import structlog

from wms.auth.principal import Principal
from wms.bus.blocked_messages import MessagePosition, SkipOrder, set_aside
from wms.bus.kafka import Kafka
from wms.db import operator_order, skip_order
from wms.db.database import Database
from wms.errors import Rejected, Unavailable

log = structlog.get_logger()

CLAIM_SECONDS: Final = 15.0
"""Seconds for which one job manager has an order to itself. It is longer than reading the message and waiting for its partition take."""
ATTEMPTS: Final = 20
"""How many times an order is tried while a consumer is handling its message. All tries take about five minutes."""


class SkipOrders:
    """Carries out orders to skip messages, one by one. Several processes may run it. `verify` returns the sender that a token proves, or None."""

    def __init__(self, db: Database, kafka: Kafka, verify: Callable[[str], Principal | None]) -> None:
        self._db = db
        self._kafka = kafka
        self._verify = verify

    async def look(self) -> bool:
        """Carry out one order. Return whether there may be more. If it fails, the failure and the reason are stored with the order."""
        async with self._db.transaction() as tx:
            row = await skip_order.claim(tx, self._kafka.cluster_id, CLAIM_SECONDS)
        if row is not None:
            await self._try(row)
        return row is not None

    async def _try(self, row: Any) -> None:
        blocked = MessagePosition(
            consumer=row["consumer"],
            topic=row["topic"],
            partition=row["partition"],
            offset=row["message_offset"],
        )
        order = SkipOrder(operator=row["operator"], reason=row["reason"])
        finish = partial(skip_order.finish, skip_order_id=row["skip_order_id"])
        try:
            await set_aside(self._db, self._kafka, blocked, order, self._verify, also=finish)
        except (Rejected, Unavailable) as fault:
            is_passing = isinstance(fault, Unavailable) and row["attempts"] < ATTEMPTS
            log.warning("message not skipped", message=blocked.text, error=str(fault), again=is_passing)
            if not is_passing:
                await self._give_up(row, blocked, fault)

    async def _give_up(self, row: Any, blocked: MessagePosition, fault: Rejected | Unavailable) -> None:
        async with self._db.transaction() as tx:
            await skip_order.finish(tx, row["skip_order_id"])
            await operator_order.record(tx, row["operator"], "skip failed", [blocked.text], fault.message)
