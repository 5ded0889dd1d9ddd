"""Refusals."""

from wms.db.database import Transaction
from wms.errors import Rejected
from wms.messages import replies


def refuse(tx: Transaction, owner: str, reply_to: str, client: str, fault: Rejected) -> None:
    """Answer the owner's tool that nothing was done, and why."""
    answer = replies.Refused(
        reply_to=reply_to,
        client=client,
        code=fault.code,
        message=fault.message,
        remedy=fault.remedy,
        details=fault.details,
    )
    tx.send(replies.inbox(owner), client, answer)
