"""Carries out orders that revoke tokens, subjects (token holders) and pilots, and lists the revocations."""

from typing import Final

from services.job_manager.queries.paging import read_page
from wms.auth.policy import allowed
from wms.auth.principal import Principal
from wms.auth.revocations import Revocation
from wms.auth.verified_token import LIFETIME_LIMIT
from wms.db import pilot, revocation
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.ids import PilotId
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.commands import Revoke

RIGHTS: Final = "operators have: right operator"


async def carry_out(tx: Transaction, principal: Principal, order: Revoke) -> str:
    """Revoke a token, a subject (all tokens of a holder) or a pilot, or end a revocation. Return the new state in words.

    Everybody may revoke the token with which the order was sent. Raise Rejected if the principal may not do it (NOT_ALLOWED), the pilot is unknown
    (NO_SUCH_PILOT), or there is no such revocation to end (NOT_REVOKED).
    """
    _check_right(principal, order)
    revoked, named = Revocation(order.kind, order.value), f"{order.kind} {order.value}"
    if order.lift:
        if not await revocation.lift(tx, revoked):
            raise Rejected("NOT_REVOKED", f"{named} is not revoked", "`wms revoke` lists what is")
        return f"{named} is accepted again"
    if order.kind == "pilot" and await pilot.one(tx, PilotId(order.value)) is None:
        raise Rejected("NO_SUCH_PILOT", f"there is no pilot {order.value}", "`wms pilots` lists them")
    await revocation.revoke(tx, revoked, principal.owner, order.reason, _seconds(order))
    return f"{named} is revoked: what it sends is refused"


async def list_revocations(
    tx: Transaction, principal: Principal, query: asked.ListRevocations
) -> replies.RevocationList:
    """Return a page of the revocations in force. Raise Rejected if the principal is no operator."""
    if not allowed(principal, "administer", "", "", ""):
        raise Rejected("NOT_ALLOWED", "you have no right to see revocations", RIGHTS)

    async def read(after: int, limit: int) -> list[replies.RevocationLine]:
        return [replies.RevocationLine(**row) for row in await revocation.listed(tx, after, limit)]

    lines, after = await read_page(read, query.after, query.limit)
    return replies.RevocationList(
        query_id=query.query_id, client=query.client, revocations=lines, after=after
    )


def _check_right(principal: Principal, order: Revoke) -> None:
    own = order.kind == "token" and order.value == principal.token_id and not order.lift
    if not own and not allowed(principal, "administer", "", "", ""):
        raise Rejected("NOT_ALLOWED", "you have no right to revoke others", RIGHTS)


def _seconds(order: Revoke) -> float | None:
    if order.for_seconds is not None or order.kind == "subject":
        return order.for_seconds
    return float(LIFETIME_LIMIT)
