"""Cancels reservations, for users who may hold the jobs concerned. The sites are asked to cancel, and the jobs are placed again."""

from collections.abc import Iterable, Sequence

from wms.agreement.agreement import Agreement
from wms.agreement.state import ALIVE
from wms.auth.policy import Action, allowed
from wms.auth.principal import Principal
from wms.db import agreement
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.messages.agreements import OFFERS_TOPIC, Cancel
from wms.messages.commands import CancelReservations

TEXT_LIMIT = 500


async def cancel(tx: Transaction, principal: Principal, order: CancelReservations) -> str:
    """Ask the sites to cancel all of these reservations, and return the new state in words.

    If one cannot be cancelled, raise Rejected and cancel none: it is unknown (NO_SUCH_RESERVATION), another user's (NOT_ALLOWED), over
    (RESERVATION_OVER), or a job runs in it (RESERVATION_IN_USE).
    """
    found = await agreement.lock(tx, set(order.agreements))
    seen = {name: each for name, each in found.items() if _may(principal, "see", each)}
    _check(
        [each for each in order.agreements if each not in seen],
        "NO_SUCH_RESERVATION",
        "there is no reservation {}",
        "`wms reservations` lists yours",
    )
    chosen = list(seen.values())
    others = _ids(each for each in chosen if not _may(principal, "hold", each))
    _check(others, "NOT_ALLOWED", "{}: for a job of another", "its owner or an operator may cancel it")
    over = _ids(each for each in chosen if each.state not in ALIVE)
    _check(over, "RESERVATION_OVER", "{}: over already", "`wms reservations --ended` says why")
    used = sorted(await agreement.in_use(tx, _ids(chosen)))
    _check(used, "RESERVATION_IN_USE", "{}: its job runs in it", "`wms kill` the job")
    for each in chosen:
        text = f"{principal.owner}: {order.reason}" if order.reason else f"by {principal.owner}"
        tx.send(
            OFFERS_TOPIC,
            each.site,
            Cancel(agreement_id=each.agreement_id, site=each.site, text=text[:TEXT_LIMIT]),
        )
    return f"cancelled: {', '.join(_ids(chosen))}; what waits for them is placed anew"


def _may(principal: Principal, action: Action, each: Agreement) -> bool:
    return allowed(principal, action, each.owner, each.group, each.vo)


def _ids(some: Iterable[Agreement]) -> list[str]:
    return [str(each.agreement_id) for each in some]


def _check(wrong: Sequence[str], code: str, text: str, remedy: str) -> None:
    if wrong:
        raise Rejected(code, text.format(", ".join(wrong)), remedy)
