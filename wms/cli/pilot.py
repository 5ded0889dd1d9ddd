"""`wms pilot`: orders private pilots, lists the orders, and withdraws them."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from wms.cli.options import USUAL, CommonOptions, Flag, Patience, WithinBounds
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

OrderId = Annotated[
    int,
    Parameter(help="The number of an order; without one, all of yours.", validator=WithinBounds(1, 2**62)),
]

pilot = App(
    name="pilot",
    help="""Order private pilots, list the orders, and withdraw them.

A private pilot takes your jobs alone, or those of your group if it shares its jobs. Jobs that ask for the pilot type private run on private pilots alone; your other jobs may run on them, too. The limits of computing elements hold for private pilots as for others. `wms pilots` lists all pilots with their owners.

For example:
  wms pilot start --count 3
  wms pilot orders
  wms pilot stop

Each of start, orders and stop has --help with more examples.""",
)


@pilot.command(name="start")
def start(
    *,
    count: Annotated[int, Parameter(validator=WithinBounds(1, 100))] = 1,
    site: str = "",
    ce: str = "",
    group_wide: Flag = False,
    within: Annotated[Patience, Parameter(show_default=lambda _: "1h")] = 3_600,
    common: CommonOptions = USUAL,
) -> int:
    """Order private pilots.

    Pilots are sent as soon as there is room. They end by themselves if they find no jobs for a while.

    For example:
      wms pilot start
      wms pilot start --count 5 --site CERN --ce ce01
      wms pilot start --group-wide --within 10m

    Parameters
    ----------
    count
        The number of pilots.
    site
        The site for the pilots; without it any site with room.
    ce
        A computing element of that site.
    group_wide
        The pilots take all jobs of your group, which must share its jobs.
    within
        The time in which to send the pilots, at most 24h; pilots that could not be sent by then are not sent.
    """

    async def work(client: "Client") -> int:
        said = await client.start_pilots(
            count, site=site, ce=ce, group_wide=group_wide, within_seconds=min(within, 86_400)
        )
        show_json({"said": said}) if common.json else show(said)
        return OK

    return with_client(common, work)


@pilot.command(name="orders")
def list_orders(*, common: CommonOptions = USUAL) -> int:
    """List the orders for private pilots, the newest first: how many were sent, and what keeps the rest back.

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
def stop(*orders: OrderId, common: CommonOptions = USUAL) -> int:
    """Withdraw orders. No more pilots are sent for them; pilots that were sent end when they find no jobs.

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
    """Return the table row that shows an order for private pilots."""
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
