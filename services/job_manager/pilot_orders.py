"""Users' orders for private pilots: accept, cancel and list them. The owner of the pilots is taken only from the token."""

from typing import Any

from services.job_manager.queries.paging import read_page
from wms.auth.policy import scope
from wms.auth.principal import Principal
from wms.db import ad, canary, pilot_order
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.commands import StartPilots, StopPilots
from wms.provisioning.private import PilotOrder

MISSING_MOST, ORDERS_MOST = 100, 20
"""The most pilots that one owner may have ordered and that are not sent yet, and the most orders with such pilots."""


async def start(tx: Transaction, principal: Principal, order: StartPilots) -> str:
    """Store an order for private pilots in this transaction, and return in words what was ordered.

    Raise Rejected if the sender may not order them, has too many open orders, or the computing element takes none.
    """
    if principal.kind != "user":
        raise Rejected("NOT_ALLOWED", "only users order private pilots", "use the token of a user")
    if scope(principal, "order_pilots").reach == "nothing":
        raise Rejected("NOT_ALLOWED", "this token may not order pilots", "ask for one that may submit jobs")
    if order.group_wide and not principal.shares_jobs:
        raise Rejected(
            "NOT_SHARED",
            f"the group {principal.vo}/{principal.group} does not share its jobs",
            "leave out --group-wide; administrators of the VO set it by `wms shares set --job-sharing`",
        )
    await _check_element(tx, principal.vo, order)
    await _check_quota(tx, principal, order.count)
    taken = PilotOrder(
        vo=principal.vo,
        owner_group=principal.group,
        owner=principal.owner,
        group_wide=order.group_wide,
        site=order.site,
        ce=order.ce,
        missing=order.count,
    )
    order_id = await pilot_order.insert(tx, taken, order.within_seconds)
    pilots = "1 private pilot" if order.count == 1 else f"{order.count} private pilots"
    shared = order.group_wide or principal.shares_jobs
    jobs = (
        f"the jobs of {principal.group}, which shares them" if shared else f"your jobs in {principal.group}"
    )
    return f"order {order_id}: {pilots} for {jobs}"


async def _check_element(tx: Transaction, vo: str, order: StartPilots) -> None:
    if not order.site:
        if order.ce:
            raise Rejected("NO_SITE", "a computing element is named without its site", "give --site, too")
        return
    name = "/".join(filter(None, (order.site, order.ce)))
    if not await canary.elements(tx, order.site, order.ce):
        raise Rejected("NO_AD", f"{name} does not advertise itself now", "`wms sites` lists those that do")
    at = [
        each
        for each in await ad.fresh(tx)
        if each.site == order.site and order.ce in ("", each.ce) and (not each.vos or vo in each.vos)
    ]
    if not at:
        raise Rejected("NOT_FOR_VO", f"{name} takes no pilots of VO {vo}", "order them elsewhere")


async def _check_quota(tx: Transaction, principal: Principal, count: int) -> None:
    orders, pilots = await pilot_order.missing(tx, principal.vo, principal.group, principal.owner)
    if pilots + count > MISSING_MOST or orders >= ORDERS_MOST:
        raise Rejected(
            "TOO_MANY_PILOTS",
            f"{orders} orders of yours lack {pilots} pilots; at most {ORDERS_MOST} orders and {MISSING_MOST} pilots may be missing",
            "wait, or withdraw some: `wms pilot orders`, `wms pilot stop`",
        )


async def stop(tx: Transaction, principal: Principal, order: StopPilots) -> str:
    """Close the sender's orders named in `order`, or all if none is named. Return in words which were closed.

    No more pilots are sent for closed orders. Raise Rejected if a named order is not open, or if there is none to close.
    """
    gone = await pilot_order.withdraw(tx, scope(principal, "order_pilots"), order.orders)
    lacking = sorted(set(order.orders) - set(gone))
    if lacking or not gone:
        named = ", ".join(map(str, lacking)) or "of yours"
        raise Rejected("NO_SUCH_ORDER", f"no order {named} is open", "`wms pilot orders` lists yours")
    numbers = ", ".join(map(str, gone))
    return f"withdrawn: {numbers}; pilots that were sent end by themselves when they find no jobs"


async def list_orders(
    tx: Transaction, principal: Principal, query: asked.ListPilotOrders
) -> replies.PilotOrders:
    """Return a page of the orders for private pilots that the sender may see, the newest first."""
    reach = scope(principal, "order_pilots")

    async def read(after: int, limit: int) -> list[replies.PilotOrderLine]:
        rows: list[Any] = await pilot_order.listed(tx, reach, after, limit)
        return [replies.PilotOrderLine(**row) for row in rows]

    lines, after = await read_page(read, query.after, query.limit)
    return replies.PilotOrders(query_id=query.query_id, client=query.client, orders=lines, after=after)
