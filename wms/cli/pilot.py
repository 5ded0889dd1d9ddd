"""`wms pilot`: order pilots of your own, list the orders, and withdraw them."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from wms.cli.options import USUAL, Common, Flag, Patience, Within
from wms.cli.printing import show, show_json, show_table
from wms.cli.quantities import since
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, TableColumn

if TYPE_CHECKING:
    from datetime import datetime

    from wms.client import Client
    from wms.messages.replies import PilotOrderLine

ORDERS = (
    TableColumn("ORDER>", ALWAYS),
    TableColumn("FOR", 1, "cut", 12),
    TableColumn("VO", 6, "cut", 8),
    TableColumn("SITE", 3, "cut", 8),
    TableColumn("CE", 5, "cut", 8),
    TableColumn("WANTED>", 1),
    TableColumn("SENT>", 1),
    TableColumn("ALIVE>", 2),
    TableColumn("STATE", 1),
    TableColumn("ORDERED>", 7),
    TableColumn("WHY", 1, "wrap", 20),
)

OrderId = Annotated[int, Parameter(help="An order; without any all of yours.", validator=Within(1, 2**62))]

pilot = App(
    name="pilot",
    help="""Order private pilots, list the orders, and withdraw them.

A private pilot takes your jobs alone, or those of your group if it shares its jobs. Jobs that ask for the pilot type private run on such pilots alone; all others may run on them, too. Where they go the limits of
computing elements say, as for all pilots. `wms pilots` lists the pilots that there are and whose they are.

For example:
  wms pilot start --count 3
  wms pilot orders
  wms pilot stop

Each of start, orders and stop has --help with more examples.""",
)


@pilot.command(name="start")
def start(
    *,
    count: Annotated[int, Parameter(validator=Within(1, 100))] = 1,
    site: str = "",
    ce: str = "",
    group_wide: Flag = False,
    within: Annotated[Patience, Parameter(show_default=lambda _: "1h")] = 3_600,
    common: Common = USUAL,
) -> int:
    """Order private pilots.

    They are sent as soon as there is room, and end by themselves when they find no jobs for a while.

    For example:
      wms pilot start
      wms pilot start --count 5 --site CERN --ce ce01
      wms pilot start --group-wide --within 10m

    Parameters
    ----------
    count
        How many pilots.
    site
        Where they are to go; without it wherever there is room.
    ce
        The computing element of that site.
    group_wide
        They are your group's, which must share its jobs.
    within
        For how long to try: what could not be sent by then is not sent, at most 24h.
    """

    async def work(client: "Client") -> int:
        said = await client.start_pilots(
            count, site=site, ce=ce, group_wide=group_wide, within_seconds=min(within, 86_400)
        )
        show_json({"said": said}) if common.json else show(said)
        return OK

    return with_client(common, work)


@pilot.command(name="orders")
def list_orders(*, common: Common = USUAL) -> int:
    """List the orders for private pilots, the newest first: how many are sent, and what keeps the rest back.

    For example:
      wms pilot orders
      wms pilot orders --json
    """

    async def work(client: "Client") -> int:
        found = await client.pilot_orders()
        if common.json:
            show_json(found)
        else:
            show_table(ORDERS, map(row, found), empty="no private pilots were ordered")
        return OK

    return with_client(common, work)


@pilot.command(name="stop")
def stop(*orders: OrderId, common: Common = USUAL) -> int:
    """Withdraw orders: no more pilots are sent for them, and those that were sent end when they find no jobs.

    For example:
      wms pilot stop 3
      wms pilot stop
    """

    async def work(client: "Client") -> int:
        said = await client.stop_pilots(*orders)
        show_json({"said": said}) if common.json else show(said)
        return OK

    return with_client(common, work)


def row(each: "PilotOrderLine") -> tuple[object, ...]:
    """Return the row of a table of orders."""
    return (
        each.order_id,
        each.owner_group if each.group_wide else f"{each.owner}@{each.owner_group}",
        each.vo,
        each.site or "any",
        each.ce or "any",
        each.wanted,
        each.sent,
        each.alive,
        each.state,
        since(each.ordered_at, _now()),
        each.held if each.state == "open" else "",
    )


def _now() -> "datetime":
    from wms.runtime import clock

    return clock.now()
