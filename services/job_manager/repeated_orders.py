"""Orders that come again: each is carried out once under its id, and answered as then. Another order under the same id is refused.

The client is no part of an order, since a gateway names another one in each request.
"""

import hashlib

import msgspec

from wms.auth.principal import Principal
from wms.db import submission
from wms.db.database import Transaction
from wms.db.submission import ExecutedCommand
from wms.errors import Rejected
from wms.messages.commands import Control, Rule


async def earlier(tx: Transaction, principal: Principal, order: Control | Rule) -> ExecutedCommand | None:
    """Return the order as it was carried out before; None if its id is new. Raise Rejected if the sender used the id for something else."""
    before = (await submission.taken(tx, principal.owner, [order.command_id])).get(order.command_id)
    if before is not None and before.digest not in (_digest(order), _earlier_digest(order)):
        raise Rejected("ID_REUSED", f"the id {order.command_id} was used before", "choose another id")
    return before


async def remember(
    tx: Transaction, principal: Principal, order: Control | Rule, answer: msgspec.Struct
) -> None:
    """Store that this transaction carries out the order, with its answer."""
    answered = msgspec.json.encode(answer).decode()
    await submission.take(tx, principal.owner, [ExecutedCommand(order.command_id, _digest(order), answered)])


def _digest(order: Control | Rule) -> bytes:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(order, client=""))).digest()


def _earlier_digest(order: Control | Rule) -> bytes:
    """Return what earlier versions stored in place of the digest."""
    return msgspec.json.encode(order.selector if isinstance(order, Control) else order)
