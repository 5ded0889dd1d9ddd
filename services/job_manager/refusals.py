"""Sends the answer to a command or query that is refused."""

from wms.db.database import Transaction
from wms.errors import Rejected
from wms.messages import replies


def refuse(tx: Transaction, owner: str, reply_to: str, client: str, fault: Rejected) -> None:
    """Send the refusal `fault` to the owner's inbox when the transaction commits.

    `reply_to` is the id of the refused command or query, `client` the id of the user's tool that waits.
    """
    answer = replies.Refused(
        reply_to=reply_to,
        client=client,
        code=fault.code,
        message=fault.message,
        remedy=fault.remedy,
        details=fault.details,
    )
    tx.send(*replies.address(owner, client), answer)
